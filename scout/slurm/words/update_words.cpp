// A field of scontrol is read as the option of sbatch with the same value, and then passed on under
// the key of score change.
#include "scout/slurm/words/update_words.hpp"

#include "base/text.hpp"
#include "scout/slurm/words/submit_words.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace score::scout::slurm {

namespace {

struct Field {
  std::string_view name;    // lower case
  std::string_view option;  // of sbatch
  std::string_view key;     // of score change
};

constexpr std::array kUpdateFields = {
    Field{"account", "account", "account"},
    Field{"cpuspertask", "cpus-per-task", "cpus-per-task"},
    Field{"deadline", "deadline", "deadline"},
    Field{"dependency", "dependency", "after"},
    Field{"eligibletime", "begin", "begin"},
    Field{"excnodelist", "exclude", "exclude"},
    Field{"features", "constraint", "constraint"},
    Field{"gres", "gres", "gres"},
    Field{"jobname", "job-name", "name"},
    Field{"minmemorynode", "mem", "mem"},
    Field{"name", "job-name", "name"},
    Field{"numnodes", "nodes", "nodes"},
    Field{"numtasks", "ntasks", "ntasks"},
    Field{"reqnodelist", "nodelist", "nodelist"},
    Field{"reservationname", "reservation", "reservation"},
    Field{"starttime", "begin", "begin"},
    Field{"taskspernode", "ntasks-per-node", "ntasks-per-node"},
    Field{"timelimit", "time", "wall-time"},
    Field{"trespernode", "gres", "gres"},
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

Error refuse(std::string_view word, std::string_view why) {
  return fail(Errc::Unsupported, "{}: {}", escape_terminal(word, 80), why);
}

// Returns the value in our form, "none" if nothing is requested.
Result<std::string> value_of(const Field& field, const std::string& value) {
  if (value.empty()) return std::string("none");
  const auto translated = translate({{field.option, value, true}}, {});
  if (!translated) return translated.error();
  if (translated->words.empty()) return std::string("none");
  const std::string& word = translated->words.front();
  return word.substr(word.find('=') + 1);
}

// Returns the change that one field requests.
Result<std::string> change_of(const std::string& word) {
  const auto equals = word.find('=');
  const std::string name = lower(std::string_view(word).substr(0, equals));
  const std::string value = word.substr(equals + 1);
  if (name == "requeue" && (value == "0" || value == "1")) {
    return fmt::format("requeue={}", value == "1" ? "yes" : "no");
  }
  if (name == "priority") return "priority=" + value;
  if (name == "nice") {
    const auto nice = parse_number<std::int32_t>(value);
    if (!nice || *nice == INT32_MIN) return refuse(word, "not a number");
    return fmt::format("priority={}", -*nice);
  }
  const auto* field = std::ranges::find(kUpdateFields, name, &Field::name);
  if (field == kUpdateFields.end())
    return refuse(word, "this cannot be changed; see score change --help");
  if (field->name == "timelimit" && (value.starts_with('+') || value.starts_with('-'))) {
    return refuse(word, "give the whole limit");
  }
  auto translated = value_of(*field, value);
  if (!translated) return translated.error().with_context("{}", escape_terminal(word, 80));
  return fmt::format("{}={}", field->key, *translated);
}

bool names_jobs(std::string_view name) {
  return name == "jobid" || name == "job";
}

}  // namespace

Result<UpdateWords> read_update(std::span<const std::string> words) {
  UpdateWords out;
  for (const std::string& word : words) {
    const auto equals = word.find('=');
    if (equals == word.npos) return refuse(word, "expected NAME=VALUE, such as TimeLimit=60");
    if (names_jobs(lower(std::string_view(word).substr(0, equals)))) {
      for (const auto job : split(std::string_view(word).substr(equals + 1), ',')) {
        if (!job.empty()) out.jobs.emplace_back(job);
      }
      continue;
    }
    auto change = change_of(word);
    if (!change) return change.error();
    out.changes.push_back(*std::move(change));
  }
  if (out.jobs.empty()) return fail(Errc::Malformed, "no job given; give JobId=JOB");
  if (out.changes.empty()) {
    return fail(Errc::Malformed, "nothing to change; give NAME=VALUE, such as TimeLimit=60");
  }
  return out;
}

}  // namespace score::scout::slurm
