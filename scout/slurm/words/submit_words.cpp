#include "scout/slurm/words/submit_words.hpp"

#include "base/text.hpp"
#include "scout/batch/slurm_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace score::scout::slurm {

namespace {

constexpr std::array kCommon = {
    OptionForm{"account", 'A', Takes::Value},
    OptionForm{"acctg-freq", 0, Takes::Value},
    OptionForm{"bb", 0, Takes::Value},
    OptionForm{"bbf", 0, Takes::Value},
    OptionForm{"begin", 'b', Takes::Value},
    OptionForm{"chdir", 'D', Takes::Value},
    OptionForm{"cluster-constraint", 0, Takes::Value},
    OptionForm{"clusters", 'M', Takes::Value},
    OptionForm{"comment", 0, Takes::Value},
    OptionForm{"constraint", 'C', Takes::Value},
    OptionForm{"container", 0, Takes::Value},
    OptionForm{"contiguous"},
    OptionForm{"core-spec", 'S', Takes::Value},
    OptionForm{"cores-per-socket", 0, Takes::Value},
    OptionForm{"cpu-freq", 0, Takes::Value},
    OptionForm{"cpus-per-gpu", 0, Takes::Value},
    OptionForm{"cpus-per-task", 'c', Takes::Value},
    OptionForm{"deadline", 0, Takes::Value},
    OptionForm{"delay-boot", 0, Takes::Value},
    OptionForm{"dependency", 'd', Takes::Value},
    OptionForm{"distribution", 'm', Takes::Value},
    OptionForm{"exclude", 'x', Takes::Value},
    OptionForm{"exclusive", 0, Takes::Maybe},
    OptionForm{"extra", 0, Takes::Value},
    OptionForm{"extra-node-info", 'B', Takes::Value},
    OptionForm{"get-user-env", 0, Takes::Maybe},
    OptionForm{"gid", 0, Takes::Value},
    OptionForm{"gpu-bind", 0, Takes::Value},
    OptionForm{"gpu-freq", 0, Takes::Value},
    OptionForm{"gpus", 'G', Takes::Value},
    OptionForm{"gpus-per-node", 0, Takes::Value},
    OptionForm{"gpus-per-socket", 0, Takes::Value},
    OptionForm{"gpus-per-task", 0, Takes::Value},
    OptionForm{"gres", 0, Takes::Value},
    OptionForm{"gres-flags", 0, Takes::Value},
    OptionForm{"hint", 0, Takes::Value},
    OptionForm{"hold", 'H'},
    OptionForm{"job-name", 'J', Takes::Value},
    OptionForm{"kill-on-invalid-dep", 0, Takes::Value},
    OptionForm{"licenses", 'L', Takes::Value},
    OptionForm{"mail-type", 0, Takes::Value},
    OptionForm{"mail-user", 0, Takes::Value},
    OptionForm{"mcs-label", 0, Takes::Value},
    OptionForm{"mem", 0, Takes::Value},
    OptionForm{"mem-bind", 0, Takes::Value},
    OptionForm{"mem-per-cpu", 0, Takes::Value},
    OptionForm{"mem-per-gpu", 0, Takes::Value},
    OptionForm{"mincpus", 0, Takes::Value},
    OptionForm{"network", 0, Takes::Value},
    OptionForm{"nice", 0, Takes::Maybe},
    OptionForm{"no-kill", 'k', Takes::Maybe},
    OptionForm{"nodefile", 'F', Takes::Value},
    OptionForm{"nodelist", 'w', Takes::Value},
    OptionForm{"nodes", 'N', Takes::Value},
    OptionForm{"ntasks", 'n', Takes::Value},
    OptionForm{"ntasks-per-core", 0, Takes::Value},
    OptionForm{"ntasks-per-gpu", 0, Takes::Value},
    OptionForm{"ntasks-per-node", 0, Takes::Value},
    OptionForm{"ntasks-per-socket", 0, Takes::Value},
    OptionForm{"overcommit", 'O'},
    OptionForm{"oversubscribe", 's'},
    OptionForm{"partition", 'p', Takes::Value},
    OptionForm{"power", 0, Takes::Value},
    OptionForm{"prefer", 0, Takes::Value},
    OptionForm{"priority", 0, Takes::Value},
    OptionForm{"profile", 0, Takes::Value},
    OptionForm{"qos", 'q', Takes::Value},
    OptionForm{"quiet", 'Q'},
    OptionForm{"reboot"},
    OptionForm{"reservation", 0, Takes::Value},
    OptionForm{"signal", 0, Takes::Value},
    OptionForm{"sockets-per-node", 0, Takes::Value},
    OptionForm{"spread-job"},
    OptionForm{"switches", 0, Takes::Value},
    OptionForm{"thread-spec", 0, Takes::Value},
    OptionForm{"threads-per-core", 0, Takes::Value},
    OptionForm{"time", 't', Takes::Value},
    OptionForm{"time-min", 0, Takes::Value},
    OptionForm{"tmp", 0, Takes::Value},
    OptionForm{"tres-bind", 0, Takes::Value},
    OptionForm{"tres-per-task", 0, Takes::Value},
    OptionForm{"uid", 0, Takes::Value},
    OptionForm{"use-min-nodes"},
    OptionForm{"verbose", 'v'},
    OptionForm{"wckey", 0, Takes::Value},
};

// These change nothing that a job could notice.
constexpr std::array<std::string_view, 15> kSilent = {
    "comment", "wckey",        "verbose",          "quiet",          "oversubscribe",
    "extra",   "clusters",     "acctg-freq",       "mcs-label",      "gres-flags",
    "threads", "preserve-env", "kill-on-bad-exit", "disable-status", "get-user-env"};

struct Variable {
  std::string_view suffix;
  std::string_view option;
  bool is_flag = false;
};

constexpr std::array kVariables = {
    Variable{"ACCOUNT", "account"},
    Variable{"ARRAY_INX", "array"},
    Variable{"BEGIN", "begin"},
    Variable{"CHDIR", "chdir"},
    Variable{"CONSTRAINT", "constraint"},
    Variable{"CPUS_PER_TASK", "cpus-per-task"},
    Variable{"DEPENDENCY", "dependency"},
    Variable{"DISTRIBUTION", "distribution"},
    Variable{"ERROR", "error"},
    Variable{"EXCLUSIVE", "exclusive", true},
    Variable{"EXPORT", "export"},
    Variable{"GPUS", "gpus"},
    Variable{"GPUS_PER_NODE", "gpus-per-node"},
    Variable{"GRES", "gres"},
    Variable{"INPUT", "input"},
    Variable{"JOB_NAME", "job-name"},
    Variable{"KILL_BAD_DEP", "kill-on-invalid-dep"},
    Variable{"MEM_PER_NODE", "mem"},
    Variable{"NO_REQUEUE", "no-requeue", true},
    Variable{"OPEN_MODE", "open-mode"},
    Variable{"OUTPUT", "output"},
    Variable{"OVERCOMMIT", "overcommit", true},
    Variable{"PARTITION", "partition"},
    Variable{"REQUEUE", "requeue", true},
    Variable{"RESERVATION", "reservation"},
    Variable{"TIMELIMIT", "time"},
    Variable{"WAIT", "wait", true},
};

bool holds(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string word_of(const GivenOption& option) {
  return option.has_value ? fmt::format("--{}={}", option.name, option.value)
                          : fmt::format("--{}", option.name);
}

// Returns the word of scrun for an option of srun that it has by another name or value; "" for one
// that is left out. Nullopt: the option is not one of these.
std::optional<std::string> run_word(const GivenOption& option) {
  const std::string& value = option.value;
  if (option.name == "label") return "--label";
  if (option.name == "unbuffered") return "--unbuffered";
  if (option.name == "pty") return "--pty";
  if (option.name == "overlap") return "--overlap";
  if (option.name == "jobid") return "--job=" + value;
  if (option.name == "multi-prog") return "";
  if (option.name == "quiet") return "--quiet";
  if (option.name == "immediate") return "--immediate=" + (option.has_value ? value + "s" : "1s");
  if (option.name == "cpu-bind") {
    for (const auto word : split(value, ',')) {
      if (word == "none" || word == "no") return "--cpu-bind=none";
      if (word == "cores" || word == "sockets") {
        return fmt::format("--cpu-bind={}", word.substr(0, word.size() - 1));
      }
    }
    return "";
  }
  if (option.name == "mpi") {
    if (value == "none") return "--mpi=none";
    return value.starts_with("pmix") ? "--mpi=pmix" : "";
  }
  return std::nullopt;
}

// Steps have cores of their own and the limits of their job.
bool is_of_job(std::string_view name) {
  constexpr std::array<std::string_view, 9> kOfJob = {"exclusive", "partition", "account",
                                                      "begin",     "hold",      "qos",
                                                      "exact",     "deadline",  "reservation"};
  return holds(kOfJob, name);
}

}  // namespace

std::vector<OptionForm> submit_forms(std::vector<OptionForm> more) {
  std::vector<OptionForm> forms(kCommon.begin(), kCommon.end());
  std::erase_if(forms, [&](const OptionForm& form) {
    return std::ranges::any_of(more, [&](const auto& other) { return other.name == form.name; });
  });
  forms.insert(forms.end(), more.begin(), more.end());
  return forms;
}

Result<SubmitWords> translate(const std::vector<GivenOption>& options,
                              const std::vector<std::string_view>& handled) {
  SubmitWords out;
  for (const GivenOption& option : options) {
    if (holds(handled, option.name) || holds(kSilent, option.name)) continue;
    if (option.name == "dependency") {
      if (auto known = check_dependency(option.value); !known) return known.error();
    }
    const auto translated = from_slurm({word_of(option)}, "");
    if (!translated) return translated.error();
    out.words.insert(out.words.end(), translated->words.begin(), translated->words.end());
    out.ignored.insert(out.ignored.end(), translated->ignored.begin(), translated->ignored.end());
  }
  return out;
}

Status check_dependency(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    return fail(Errc::Unsupported, "--dependency={}: {}", escape_terminal(text, 80), why);
  };
  for (const auto part : split(text, text.find('?') == text.npos ? ',' : '?')) {
    if (part.starts_with("aftercorr")) {
      return refuse("aftercorr is not supported; afterok:ARRAY waits for all of its tasks");
    }
  }
  return {};
}

std::vector<GivenOption> options_in_environment(
    std::string_view prefix, const std::function<const char*(const char*)>& value_of) {
  std::vector<GivenOption> options;
  for (const Variable& variable : kVariables) {
    const char* value = value_of(fmt::format("{}{}", prefix, variable.suffix).c_str());
    if (value == nullptr) continue;
    options.push_back({variable.option, variable.is_flag ? "" : value, !variable.is_flag});
  }
  return options;
}

Result<SubmitWords> translate_run(const std::vector<GivenOption>& options, bool is_step) {
  std::vector<std::string> words;
  std::vector<GivenOption> rest;
  for (const GivenOption& option : options) {
    if (is_step && is_of_job(option.name)) continue;
    const auto word = run_word(option);
    if (!word) rest.push_back(option);
    if (word && !word->empty()) words.push_back(*word);
  }
  auto translated = translate(rest, {});
  if (!translated) return translated.error();
  translated->words.insert(translated->words.begin(), words.begin(), words.end());
  return translated;
}

}  // namespace score::scout::slurm
