// scancel ends jobs, or sends them a signal. It does not wait for their end.
#include "base/text.hpp"
#include "scout/session/words.hpp"
#include "scout/slurm/commands.hpp"
#include "scout/slurm/job_list.hpp"
#include "scout/slurm/slurm_command.hpp"
#include "scout/slurm/words/job_words.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace score::scout {

namespace slurm {
namespace {

constexpr std::array kForms = {
    OptionForm{"account", 'A', Takes::Value},
    OptionForm{"admin-comment", 0, Takes::Value},
    OptionForm{"batch", 'b'},
    OptionForm{"clusters", 'M', Takes::Value},
    OptionForm{"ctld"},
    OptionForm{"cron"},
    OptionForm{"full", 'f'},
    OptionForm{"hurry", 'H'},
    OptionForm{"interactive", 'i'},
    OptionForm{"jobname", 'n', Takes::Value},
    OptionForm{"name", 0, Takes::Value},
    OptionForm{"me"},
    OptionForm{"nodelist", 'w', Takes::Value},
    OptionForm{"partition", 'p', Takes::Value},
    OptionForm{"qos", 'q', Takes::Value},
    OptionForm{"quiet", 'Q'},
    OptionForm{"reservation", 'R', Takes::Value},
    OptionForm{"sibling", 0, Takes::Value},
    OptionForm{"signal", 's', Takes::Value},
    OptionForm{"state", 't', Takes::Value},
    OptionForm{"user", 'u', Takes::Value},
    OptionForm{"verbose", 'v'},
    OptionForm{"wckey", 0, Takes::Value},
};

struct Selection {
  WordSet users, names, states, accounts, partitions, nodes;

  [[nodiscard]] bool chooses() const {
    return !(users.empty() && names.empty() && states.empty() && accounts.empty() &&
             partitions.empty() && nodes.empty());
  }

  [[nodiscard]] bool matches(const wire::JobStatus& job) const {
    const auto holds = [](const WordSet& set, std::string_view word) {
      return set.empty() || set.contains(word);
    };
    const auto has_state = [&](const auto& word) { return is_state(word, job.state()); };
    const auto is_there = [&](const auto& node) { return nodes.contains(node); };
    return (holds(users, job.user_name()) || users.contains(std::to_string(job.user()))) &&
           holds(names, job.name()) && holds(accounts, job.account()) &&
           holds(partitions, queue_word(job.queue())) &&
           (states.empty() || std::ranges::any_of(states, has_state)) &&
           (nodes.empty() || std::ranges::any_of(job.nodes(), is_there));
  }
};

Result<Selection> selection_of(const CommandLine& line) {
  Selection selection;
  selection.users = word_set(line.list("user"));
  if (line.has("me")) selection.users = {own_user()};
  selection.names = word_set(line.list("jobname"));
  selection.names.merge(word_set(line.list("name")));
  selection.states = word_set(line.list("state"));
  selection.accounts = word_set(line.list("account"));
  selection.partitions = word_set(line.list("partition"));
  selection.nodes = word_set(line.list("nodelist"));
  for (const auto& state : selection.states) {
    if (is_state_word(state)) continue;
    return fail(Errc::NotFound, "invalid job state specified: {}", escape_terminal(state, 80));
  }
  return selection;
}

// Target is one job, step or set of array tasks to cancel.
struct Target {
  std::string shown;
  JobWord word;
};

Result<std::vector<Target>> selected(HeadLink& head, const Selection& selection,
                                     const std::vector<std::string>& words) {
  auto found = words.empty() ? queued_jobs(head, false) : Result<Jobs>(Jobs());
  if (!found) return found.error();
  if (!words.empty()) {
    auto named = named_jobs(head, words);
    if (!named) return named.error();
    *found = std::move(named->jobs);
  }
  std::vector<Target> targets;
  for (const auto& job : *found) {
    if (is_final_state(job.state()) || !selection.matches(job)) continue;
    targets.push_back({id_words(job), {job.job()}});
  }
  return targets;
}

// Asks the head to end the target, or to send it the signal. A job that has ended is no error.
Status cancel(HeadLink& head, const Target& target, int signal, Duration grace) {
  Result<std::uint64_t> id = target.word.job;
  if (target.word.step || (signal != 0 && !target.word.tasks.empty())) {
    id = find_job(head, target.word);
  }
  if (!id) return id.error();
  Result<wire::Done> done = wire::Done();
  if (signal != 0) {
    wire::SignalJob request;
    request.set_job(*id);
    request.set_signal(signal);
    done = head.ask<wire::Done>(request);
  } else {
    wire::CancelJob request;
    request.set_job(*id);
    if (!target.word.step) request.set_tasks(target.word.tasks);
    request.set_grace_ns(grace.count());
    done = head.ask<wire::Done>(request);
  }
  if (done) return {};
  const auto jobs = ask_jobs(head, {*id});
  if (jobs && is_final_state(jobs->jobs(0).state())) return {};
  return done.error();
}

Result<int> cancel_all(HeadLink& head, const Invocation& invocation, const CommandLine& line,
                       const Selection& selection, int signal) {
  std::vector<std::string> words;
  for (const auto& word : line.words) {
    for (auto& job : split_jobs(word)) words.push_back(std::move(job));
  }
  std::vector<Target> targets;
  int code = kExitOk;
  if (selection.chooses()) {
    auto found = selected(head, selection, words);
    if (!found) return found.error();
    targets = std::move(*found);
  } else {
    for (const auto& word : words) {
      const auto read = parse_job_word(word);
      if (!read) {
        code = print_failure(invocation, "Invalid job id " + escape_terminal(word, 80));
        continue;
      }
      targets.push_back({escape_terminal(word, 80), *read});
    }
  }
  const bool is_quiet = line.has("quiet");
  for (const Target& target : targets) {
    const auto done = cancel(head, target, signal, Duration(-1));
    if (done) continue;
    if (done.error().is(Errc::Closed)) return done.error();
    code = kExitFailed;
    if (is_quiet) continue;
    print_failure(invocation, fmt::format("Kill job error on job id {}: {}", target.shown,
                                          escape_terminal(words_of(done.error()), 400)));
  }
  return code;
}

}  // namespace
}  // namespace slurm

int scancel_main(const Invocation& invocation) {
  using namespace slurm;
  const auto [line, code] =
      read_line(invocation, kForms, {"[OPTION...] [JOB...]", "ends jobs or sends them a signal"});
  if (code) return *code;
  const auto selection = selection_of(line);
  if (!selection) return print_failure(invocation, selection.error());
  if (line.words.empty() && !selection->chooses()) {
    return print_failure(invocation, "No job identification provided");
  }
  int signal = 0;
  if (const auto word = line.last("signal")) {
    const auto parsed = parse_signal(*word);
    if (!parsed) return print_failure(invocation, parsed.error());
    signal = *parsed;
  }
  return ask_head(invocation, [&](HeadLink& head) {
    return cancel_all(head, invocation, line, *selection, signal);
  });
}

}  // namespace score::scout
