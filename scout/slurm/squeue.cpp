// The command squeue lists waiting and running jobs; with -t, also those that ended lately.
#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/json_writer.hpp"
#include "scout/session/job_views.hpp"
#include "scout/session/words.hpp"
#include "scout/slurm/commands.hpp"
#include "scout/slurm/job_list.hpp"
#include "scout/slurm/slurm_command.hpp"
#include "scout/slurm/words/job_words.hpp"
#include "scout/slurm/words/queue_fields.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <poll.h>

namespace score::scout {

namespace slurm {
namespace {

constexpr std::array kForms = {
    OptionForm{"account", 'A', Takes::Value},
    OptionForm{"all", 'a'},
    OptionForm{"array", 'r'},
    OptionForm{"array-unique"},
    OptionForm{"clusters", 'M', Takes::Value},
    OptionForm{"federation"},
    OptionForm{"format", 'o', Takes::Value},
    OptionForm{"Format", 'O', Takes::Value},
    OptionForm{"hide"},
    OptionForm{"iterate", 'i', Takes::Value},
    OptionForm{"jobs", 'j', Takes::Maybe},
    OptionForm{"json", 0, Takes::Maybe},
    OptionForm{"local"},
    OptionForm{"long", 'l'},
    OptionForm{"me"},
    OptionForm{"name", 'n', Takes::Value},
    OptionForm{"noconvert"},
    OptionForm{"nodelist", 'w', Takes::Value},
    OptionForm{"noheader", 'h'},
    OptionForm{"partition", 'p', Takes::Value},
    OptionForm{"priority", 'P'},
    OptionForm{"qos", 'q', Takes::Value},
    OptionForm{"reservation", 'R', Takes::Value},
    OptionForm{"sibling"},
    OptionForm{"sort", 'S', Takes::Value},
    OptionForm{"start"},
    OptionForm{"states", 't', Takes::Value},
    OptionForm{"steps", 's', Takes::Maybe},
    OptionForm{"user", 'u', Takes::Value},
    OptionForm{"verbose", 'v'},
};

constexpr const char* kShort = "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R";
constexpr const char* kLong = "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R";
constexpr const char* kStartFormat = "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %R";

using Columns = std::vector<ChosenColumn<wire::JobStatus>>;

// The value of -j may be the next word, as in "-j 12"; the parser leaves it among the words.
std::vector<std::string> jobs_of(const CommandLine& line) {
  std::vector<std::string> jobs = split_jobs(line.list("jobs"));
  for (const std::string& word : line.words) {
    for (auto& job : split_jobs(word)) jobs.push_back(std::move(job));
  }
  return jobs;
}

Result<Columns> columns_of(const CommandLine& line) {
  const bool has_names = line.has("Format");
  const char* variable = std::getenv("SQUEUE_FORMAT");
  std::string letters = line.has("long") ? kLong : line.has("start") ? kStartFormat : kShort;
  if (variable != nullptr && !line.has("long") && !line.has("start")) letters = variable;
  letters = line.last("format").value_or(letters);
  auto columns = has_names ? read_names(line.list("Format")) : read_letters(letters);
  if (!columns) return columns.error();
  return choose_fields(queue_fields(), std::move(*columns), !has_names);
}

struct Filter {
  WordSet users, accounts, names, states, partitions, nodes;

  [[nodiscard]] bool matches(const wire::JobStatus& job) const {
    const auto holds = [](const WordSet& set, std::string_view word) {
      return set.empty() || set.contains(word);
    };
    const bool is_user =
        holds(users, job.user_name()) || users.contains(std::to_string(job.user()));
    const bool is_named = is_user && holds(accounts, job.account()) && holds(names, job.name()) &&
                          holds(partitions, queue_word(job.queue()));
    const auto is_there = [&](const auto& node) { return nodes.contains(node); };
    return is_named && has_state(job) &&
           (nodes.empty() || std::ranges::any_of(job.nodes(), is_there));
  }

  [[nodiscard]] bool has_state(const wire::JobStatus& job) const {
    if (states.empty()) return !is_final_state(job.state());
    return std::ranges::any_of(states,
                               [&](const auto& word) { return is_state(word, job.state()); });
  }
};

Result<Filter> filter_of(const CommandLine& line) {
  Filter filter;
  filter.users = word_set(line.list("user"));
  if (line.has("me")) filter.users = {own_user()};
  filter.accounts = word_set(line.list("account"));
  filter.names = word_set(line.list("name"));
  filter.partitions = word_set(line.list("partition"));
  filter.states = word_set(line.list("states"));
  for (const auto& word : filter.states) {
    if (!is_state_word(word)) {
      return fail(Errc::NotFound, "invalid job state specified: {}", escape_terminal(word, 80));
    }
  }
  if (const auto nodes = line.last("nodelist")) {
    const auto names = expand_hostlist(*nodes);
    if (!names) return names.error().with_context("--nodelist");
    filter.nodes.insert(names->begin(), names->end());
  }
  return filter;
}

std::string json_of(const Jobs& jobs) {
  JsonWriter json;
  json.begin_object().field("schema", "scored.jobs/1").key("jobs").begin_array();
  for (const auto& job : jobs) write_job(json, job);
  return json.end_array().field("truncated", false).end_object().take() + "\n";
}

Result<int> show(HeadLink& head, const Invocation& invocation, const CommandLine& line,
                 const Filter& filter, const Columns& columns) {
  const std::vector<std::string> words = jobs_of(line);
  int code = kExitOk;
  Jobs jobs;
  if (!words.empty()) {
    auto named = named_jobs(head, words);
    if (!named) return named.error();
    jobs = std::move(named->jobs);
    // One unknown job among several is left out without a message, as Slurm does.
    if (jobs.empty() && !named->missing.empty()) {
      code = print_failure(invocation, "Invalid job id specified");
    }
  } else {
    auto queued = queued_jobs(head, !filter.states.empty());
    if (!queued) return queued.error();
    jobs = std::move(*queued);
  }
  std::erase_if(jobs, [&](const auto& job) { return !filter.matches(job); });
  if (line.has("json")) return print(json_of(jobs)), code;
  std::string text = line.has("noheader") ? "" : heading_line(columns);
  for (const auto& job : jobs) text += item_line(columns, job);
  print(text);
  return code;
}

}  // namespace
}  // namespace slurm

int squeue_main(const Invocation& invocation) {
  using namespace slurm;
  const auto [line, code] =
      read_line(invocation, kForms, {"[OPTION...] [JOB...]", "lists waiting and running jobs"});
  if (code) return *code;
  const auto filter = filter_of(line);
  if (!filter) return print_failure(invocation, filter.error());
  const auto columns = columns_of(line);
  if (!columns) return print_failure(invocation, columns.error());
  const auto period = parse_number<std::uint32_t>(line.last("iterate").value_or("0"));
  if (!period || *period > 86'400) {
    return print_failure(invocation, "--iterate: expected a number of seconds");
  }
  for (;;) {
    const int shown = ask_head(invocation, [&](HeadLink& head) {
      return show(head, invocation, line, *filter, *columns);
    });
    if (*period == 0) return shown;
    ::poll(nullptr, 0, static_cast<int>(*period * 1'000));
  }
}

}  // namespace score::scout
