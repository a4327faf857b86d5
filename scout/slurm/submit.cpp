// The commands sbatch, srun and salloc translate their command lines and do what scbatch, scrun and
// scalloc do.
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "scout/commands/batch_submission.hpp"
#include "scout/commands/commands.hpp"
#include "scout/session/words.hpp"
#include "scout/slurm/commands.hpp"
#include "scout/slurm/slurm_command.hpp"
#include "scout/slurm/words/job_words.hpp"
#include "scout/slurm/words/submit_words.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace score::scout {

namespace slurm {
namespace {

using Words = std::vector<std::string>;

std::vector<OptionForm> batch_forms() {
  return submit_forms({
      {"array", 'a', Takes::Value},
      {"batch", 0, Takes::Value},
      {"error", 'e', Takes::Value},
      {"export", 0, Takes::Value},
      {"export-file", 0, Takes::Value},
      {"ignore-pbs"},
      {"input", 'i', Takes::Value},
      {"no-requeue"},
      {"open-mode", 0, Takes::Value},
      {"output", 'o', Takes::Value},
      {"parsable"},
      {"propagate", 0, Takes::Maybe},
      {"requeue"},
      {"test-only"},
      {"wait", 'W'},
      {"wait-all-nodes", 0, Takes::Value},
      {"wrap", 0, Takes::Value},
  });
}

std::vector<OptionForm> run_forms() {
  return submit_forms({
      {"bcast", 0, Takes::Maybe},
      {"compress", 0, Takes::Maybe},
      {"cpu-bind", 0, Takes::Value},
      {"disable-status", 'X'},
      {"epilog", 0, Takes::Value},
      {"error", 'e', Takes::Value},
      {"exact"},
      {"export", 0, Takes::Value},
      {"het-group", 0, Takes::Value},
      {"immediate", 'I', Takes::Maybe},
      {"input", 'i', Takes::Value},
      {"jobid", 0, Takes::Value},
      {"kill-on-bad-exit", 'K', Takes::Maybe},
      {"label", 'l'},
      {"mpi", 0, Takes::Value},
      {"msg-timeout", 0, Takes::Value},
      {"multi-prog"},
      {"no-allocate", 'Z'},
      {"open-mode", 0, Takes::Value},
      {"output", 'o', Takes::Value},
      {"overlap"},
      {"preserve-env", 'E'},
      {"prolog", 0, Takes::Value},
      {"propagate", 0, Takes::Maybe},
      {"pty", 0, Takes::Maybe},
      {"quit-on-interrupt"},
      {"relative", 'r', Takes::Value},
      {"resv-ports", 0, Takes::Maybe},
      {"slurmd-debug", 0, Takes::Value},
      {"task-epilog", 0, Takes::Value},
      {"task-prolog", 0, Takes::Value},
      {"threads", 'T', Takes::Value},
      {"unbuffered", 'u'},
      {"wait", 'W', Takes::Value},
      {"whole"},
  });
}

std::vector<OptionForm> allocation_forms() {
  return submit_forms({
      {"bell"},
      {"immediate", 'I', Takes::Maybe},
      {"kill-command", 'K', Takes::Maybe},
      {"no-bell"},
      {"no-shell"},
      {"wait-all-nodes", 0, Takes::Value},
  });
}

void report_ignored(const Invocation& invocation, const Words& ignored) {
  for (const std::string& word : ignored) {
    tell(fmt::format("{}: ignoring {}", invocation.name, escape_terminal(word, 200)));
  }
}

// Prints when and where the job would start, as clients expect it.
Result<int> show_plan(const Invocation& invocation, HeadLink& head,
                      const wire::Submit& submission) {
  wire::Plan question;
  *question.mutable_submission() = submission;
  const auto planned = head.ask<wire::Planned>(question);
  if (!planned) return planned.error();
  std::int64_t start = planned->expected_start_wall_ns();
  if (planned->starts()) start = wall_now().time_since_epoch().count();
  const auto cores = planned->tasks() * std::max(1U, submission.resources().cpus_per_task());
  const Words nodes(planned->nodes().begin(), planned->nodes().end());
  tell(fmt::format("{}: Job to start at {} using {} processors on nodes {} in partition {}",
                   invocation.name, moment(start, "an unknown time"), cores,
                   nodes.empty() ? "(none yet)" : compress_hostlist(nodes),
                   queue_word(submission.resources().queue())));
  return kExitOk;
}

int code_of(int code) {
  return code == kExitError ? kExitFailed : code;
}

void append(Words& words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// Returns the number of nodes of the job around this process; 0 outside a job.
std::uint32_t nodes_around() {
  if (std::getenv("SCORE_ALLOCATION") == nullptr) return 0;
  for (const char* name : {"SLURM_JOB_NUM_NODES", "SCORE_NNODES"}) {
    const char* value = std::getenv(name);
    const auto number = parse_number<std::uint32_t>(value != nullptr ? value : "");
    if (number) return *number;
  }
  return 0;
}

// A step runs on all nodes of its job unless it has fewer tasks.
void spread_over_job(const CommandLine& line, Words& words) {
  const auto tasks = parse_number<std::uint32_t>(line.last("ntasks").value_or(""));
  const std::uint32_t nodes = nodes_around();
  const bool is_open = !line.has("nodes") && !line.has("nodelist") && !line.has("jobid");
  if (!tasks || *tasks == 0 || nodes == 0 || !is_open) return;
  words.push_back(fmt::format("--nodes={}", std::min(*tasks, nodes)));
}

// Returns the number of the job that a task of an array is. A task that is no job yet is replaced
// by its array, which ends later.
Result<std::string> resolve_task(HeadLink& head, const Invocation& invocation,
                                 const std::string& word) {
  const auto read = parse_job_word(word);
  if (!read) return read.error();
  const auto found = find_words(head, {word});
  if (!found) return found.error();
  if (!found->missing.empty()) return found->missing.front();
  const auto& job = found->list.jobs(0);
  if (job.array_job() != job.job()) return std::to_string(job.job());
  tell(fmt::format("{}: {} has not started, so the job waits for the whole array {}",
                   invocation.name, word, job.job()));
  return std::to_string(job.job());
}

Result<std::string> resolve_dependency(HeadLink& head, const Invocation& invocation,
                                       std::string_view text) {
  std::string out;
  const char separator = text.find('?') == text.npos ? ',' : '?';
  for (const auto part : split(text, separator)) {
    if (!out.empty()) out += separator;
    bool is_first = true;
    for (const auto word : split(part, ':')) {
      if (!is_first) out += ':';
      if (is_first || word.find('_') == word.npos) {
        out += word;
      } else {
        const auto job = resolve_task(head, invocation, std::string(word));
        if (!job) return job.error();
        out += *job;
      }
      is_first = false;
    }
  }
  return out;
}

// Replaces tasks of arrays, such as 12_7, in --dependency by the numbers of their jobs. Returns the
// exit code after an error, which has been printed.
std::optional<int> resolve_dependencies(const Invocation& invocation, Words& words) {
  constexpr std::string_view kOption = "--dependency=";
  for (std::string& word : words) {
    if (!word.starts_with(kOption) || word.find('_') == word.npos) continue;
    const int code = ask_head(invocation, [&](HeadLink& head) -> Result<int> {
      auto resolved =
          resolve_dependency(head, invocation, std::string_view(word).substr(kOption.size()));
      if (!resolved) return resolved.error().with_context("--dependency");
      word = std::string(kOption) + *resolved;
      return kExitOk;
    });
    if (code != kExitOk) return code;
  }
  return std::nullopt;
}

}  // namespace
}  // namespace slurm

int sbatch_main(const Invocation& invocation) {
  using namespace slurm;
  const auto forms = batch_forms();
  const auto [line, code] = read_line(
      invocation, forms,
      {"[OPTION...] [SCRIPT [ARGUMENT...]]", "submits a batch script", Order::OptionsFirst});
  if (code) return *code;
  constexpr std::string_view kHandled[] = {"wrap", "parsable", "test-only", "quiet"};
  const auto words = translate(line.options, {std::begin(kHandled), std::end(kHandled)});
  if (!words) return print_failure(invocation, words.error());
  const auto variables = translate(options_in_environment("SBATCH_", std::getenv), {});
  if (!variables) {
    return print_failure(invocation, variables.error().with_context("variables SBATCH_*"));
  }
  const bool is_quiet = line.has("quiet");
  if (!is_quiet) report_ignored(invocation, words->ignored);
  BatchStyle style;
  style.output = "slurm-%j.out";
  style.array_output = "slurm-%A_%a.out";
  style.slurm_env = true;
  style.before_id = line.has("parsable") ? "" : "Submitted batch job ";
  style.environment = variables->words;
  style.show_plan = [&](HeadLink& head, const wire::Submit& submission) {
    return show_plan(invocation, head, submission);
  };
  Words args = words->words;
  if (const auto ended = resolve_dependencies(invocation, args)) return *ended;
  if (line.has("test-only")) args.emplace_back("--dry-run");
  if (is_quiet) args.emplace_back("--quiet");
  if (const auto wrap = line.last("wrap")) args.push_back("--wrap=" + *wrap);
  if (!line.words.empty()) args.emplace_back("--");
  append(args, line.words);
  return code_of(submit_batch(invocation.with(std::move(args)), style));
}

int srun_main(const Invocation& invocation) {
  using namespace slurm;
  const auto forms = run_forms();
  const auto [line, code] = read_line(
      invocation, forms,
      {"[OPTION...] PROGRAM [ARGUMENT...]", "runs a parallel program", Order::OptionsFirst});
  if (code) return *code;
  const bool is_step = std::getenv("SCORE_ALLOCATION") != nullptr || line.has("jobid");
  const auto words = translate_run(line.options, is_step);
  if (!words) return print_failure(invocation, words.error());
  if (!line.has("quiet")) report_ignored(invocation, words->ignored);
  Words args = {"--slurm-env"};
  const char* rule = std::getenv("SLURM_EXPORT_ENV");
  if (rule != nullptr && *rule != '\0' && !line.has("export")) {
    args.push_back(fmt::format("--export={}", rule == std::string_view("NIL") ? "NONE" : rule));
  }
  append(args, words->words);
  spread_over_job(line, args);
  if (line.words.empty()) return print_failure(invocation, "no executable program specified");
  const bool is_multi = line.has("multi-prog");
  if (is_multi) args.push_back("--multi-prog=" + line.words[0]);
  args.emplace_back("--");
  args.insert(args.end(), line.words.begin() + (is_multi ? 1 : 0), line.words.end());
  return scrun_main(invocation.with(std::move(args)));
}

int salloc_main(const Invocation& invocation) {
  using namespace slurm;
  const auto forms = allocation_forms();
  const auto [line, code] =
      read_line(invocation, forms,
                {"[OPTION...] [COMMAND [ARGUMENT...]]", "holds nodes while a command runs here",
                 Order::OptionsFirst});
  if (code) return *code;
  const auto words = translate(line.options, {"bell", "no-bell", "kill-command", "quiet"});
  if (!words) return print_failure(invocation, words.error());
  if (line.has("no-shell")) {
    return print_failure(invocation, "--no-shell: nodes are held only while a command runs here");
  }
  if (!line.has("quiet")) report_ignored(invocation, words->ignored);
  const auto variables = translate(options_in_environment("SALLOC_", std::getenv), {});
  if (!variables) {
    return print_failure(invocation, variables.error().with_context("variables SALLOC_*"));
  }
  Words args = variables->words;
  append(args, words->words);
  if (line.has("quiet")) args.emplace_back("--quiet");
  if (!line.words.empty()) args.emplace_back("--");
  append(args, line.words);
  return hold_nodes(invocation.with(std::move(args)), true);
}

}  // namespace score::scout
