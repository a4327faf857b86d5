// These commands change what a job's submission requested: score change, score requeue.
//
// The words KEY=VALUE become the options of scbatch with the same values, so a value is read here
// exactly as at submission. The head gets the keys, and the whole request that the options make.
#include "scout/change/change.hpp"

#include "base/request/job_keys.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "scout/commands/commands.hpp"
#include "scout/run/run_options.hpp"
#include "scout/session/session.hpp"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <algorithm>

namespace score::scout {

namespace {

std::vector<std::string> key_names() {
  std::vector<std::string> names;
  for (const JobKeyRule& rule : job_keys()) names.emplace_back(rule.name);
  return names;
}

Error unknown_key(std::string_view key) {
  const auto names = key_names();
  const auto near = nearest_word(key, names);
  return fail(Errc::NotFound, "unknown key '{}'{}; the keys are {}", escape_terminal(key, 80),
              near.empty() ? "" : fmt::format(" (did you mean {}?)", near), fmt::join(names, ", "));
}

// Returns the option for the value; empty if the value removes the request.
Result<std::string> option_of(const JobKeyRule& rule, const std::string& value) {
  if (value.empty()) {
    return fail(Errc::Malformed, "{}= needs a value{}", rule.name,
                rule.may_be_none ? "; none removes it" : "");
  }
  if (rule.may_be_none && value == "none") return std::string();
  if (rule.key == JobKey::Requeue) {
    if (value == "yes") return std::string("--requeue");
    if (value == "no") return std::string("--no-requeue");
    return fail(Errc::Malformed, "requeue: '{}' is neither yes nor no", escape_terminal(value, 80));
  }
  return fmt::format("--{}={}", rule.option, value);
}

std::string keys_help() {
  std::string text = "\nKeys, with values as the options of scbatch have them:\n";
  for (const JobKeyRule& rule : job_keys()) {
    const std::string key = fmt::format("{}={}", rule.name, rule.value);
    text += rule.may_run ? fmt::format("  {:<26} also while the job runs\n", key)
                         : fmt::format("  {}\n", key);
  }
  return text + "\nThe value none removes a limit, a condition or a demand.\n";
}

// Returns the active jobs that a word names: a job, or tasks of an array.
Result<std::vector<std::uint64_t>> changed_jobs(HeadLink& head, const Invocation& invocation,
                                                const std::string& word, int& code) {
  const auto named = parse_job_word(word);
  if (!named) return named.error();
  if (named->step) {
    return fail(Errc::Malformed, "{} is a step; give its job", escape_terminal(word, 80));
  }
  if (named->tasks.empty()) return std::vector<std::uint64_t>{named->job};
  const auto found = find_words(head, {word});
  if (!found) return found.error();
  if (!found->missing.empty()) return found->missing.front();
  std::vector<std::uint64_t> ids;
  for (const auto& job : found->list.jobs()) {
    if (job.job() == job.array_job()) {
      code = print_error(invocation,
                         fmt::format("{}: tasks that have not joined the queue follow their array; "
                                     "give {}",
                                     escape_terminal(word, 80), named->job));
    } else if (!is_final_state(job.state())) {
      ids.push_back(job.job());
    }
  }
  if (ids.empty() && code == kExitOk) {
    return fail(Errc::WrongState, "{} has ended", escape_terminal(word, 80));
  }
  return ids;
}

// Adds the tasks of an array that run, in place of its record.
Result<std::vector<std::uint64_t>> requeued_tasks(HeadLink& head, std::uint64_t id) {
  const auto record = ask_jobs(head, {id});
  if (!record) return record.error();
  if (record->jobs(0).array_job() != id) return std::vector<std::uint64_t>{id};
  wire::ListJobs request;
  request.set_all_users(true);
  request.set_expand(true);
  request.set_after_job(id);
  const auto list = list_jobs(head, std::move(request));
  if (!list) return list.error();
  std::vector<std::uint64_t> ids;
  for (const auto& job : list->jobs()) {
    const auto state = static_cast<base::JobState>(job.state());
    const bool is_waiting = state == base::JobState::Pending;
    if (job.array_job() == id && !is_waiting && !is_final_state(job.state())) {
      ids.push_back(job.job());
    }
  }
  if (ids.empty()) return fail(Errc::WrongState, "no task of job {} is running", id);
  return ids;
}

using ForWord =
    std::function<Result<std::vector<std::uint64_t>>(HeadLink&, const std::string&, int&)>;

// Sends the request for each job that the words name. A job that cannot be named is reported, and
// the others are handled.
template <typename Request>
Result<int> send_each(HeadLink& head, const Invocation& invocation, const CommonOptions& common,
                      const std::vector<std::string>& words, const ForWord& jobs_for,
                      Request request) {
  int code = kExitOk;
  std::vector<std::uint64_t> ids;
  for (const auto& word : words) {
    const auto jobs = jobs_for(head, word, code);
    if (!jobs && jobs.error().is(Errc::Closed)) return jobs.error();
    if (!jobs) {
      code = print_error(invocation, jobs.error());
      continue;
    }
    ids.insert(ids.end(), jobs->begin(), jobs->end());
  }
  const int sent = for_each_job(invocation, common, ids, [&](std::uint64_t id) -> Result<void> {
    request.set_job(id);
    const auto done = head.ask<wire::Done>(request);
    if (!done) return done.error();
    if (!done->text().empty()) print_error(invocation, escape_terminal(done->text()));
    return {};
  });
  return sent != kExitOk ? sent : code;
}

}  // namespace

Result<ChangeWords> split_change(const std::vector<std::string>& words) {
  ChangeWords out;
  for (const auto& word : words) {
    const auto equals = word.find('=');
    if (equals == word.npos) {
      out.jobs.push_back(word);
      continue;
    }
    const JobKeyRule* rule = find_job_key(word.substr(0, equals));
    if (rule == nullptr) return unknown_key(word.substr(0, equals));
    if (std::ranges::find(out.keys, rule->key) != out.keys.end()) {
      return fail(Errc::Malformed, "{} is given twice", rule->name);
    }
    auto option = option_of(*rule, word.substr(equals + 1));
    if (!option) return option.error();
    out.keys.push_back(rule->key);
    if (!option->empty()) out.options.push_back(std::move(*option));
  }
  if (out.jobs.empty()) return fail(Errc::Malformed, "no job given");
  if (out.keys.empty()) {
    return fail(Errc::Malformed, "nothing to change; give KEY=VALUE, with the keys {}",
                fmt::join(key_names(), ", "));
  }
  return out;
}

int change_main(const Invocation& invocation) {
  CommonOptions common;
  std::vector<std::string> words;
  CLI::App app;
  describe(app, invocation, "Changes what the submission of jobs requested");
  app.footer(keys_help());
  add_server_option(app, common);
  add_json_option(app, common);
  app.add_option("words", words, "Job ids, and what to change: 7 time=2h; 12_3, 12_[1-5]: tasks")
      ->type_name("JOB... KEY=VALUE...")
      ->required();
  if (const auto code = parse(app, invocation)) return *code;
  const auto change = split_change(words);
  if (!change) return print_error(invocation, change.error());
  for (const JobKeyRule& rule : job_keys()) {
    (*invocation.typed)[fmt::format("--{}", rule.option)] = rule.name;
  }
  invocation.typed->insert({{"-w", "nodelist"}, {"-x", "exclude"}});
  RunOptions wanted;
  CLI::App options;
  describe(options, invocation, "");
  add_job_options(options, wanted);
  if (const auto code = parse(options, invocation.with(change->options))) return *code;
  wire::ChangeJob request;
  wire::Submit conditions;
  auto read = fill_resources(wanted, *request.mutable_resources());
  if (read) read = fill_conditions(wanted.waits, wall_now(), conditions);
  if (!read) return print_error(invocation, read.error());
  *request.mutable_conditions() = conditions.conditions();
  request.set_name(wanted.job_name);
  for (const JobKey key : change->keys) request.add_keys(static_cast<std::uint32_t>(key));
  return with_head(invocation, common, [&](HeadLink& head) {
    return send_each(
        head, invocation, common, change->jobs,
        [&](HeadLink& link, const std::string& word, int& code) {
          return changed_jobs(link, invocation, word, code);
        },
        request);
  });
}

int requeue_main(const Invocation& invocation) {
  CommonOptions common;
  std::vector<std::string> jobs;
  CLI::App app;
  describe(app, invocation,
           "Ends running batch and detached jobs on their nodes and puts them back into the queue");
  add_server_option(app, common);
  add_json_option(app, common);
  app.add_option("jobs", jobs, "Job ids; 12_3, 12_[1-5]: tasks of array 12; 12: all that run")
      ->type_name("JOB")
      ->required();
  if (const auto code = parse(app, invocation)) return *code;
  wire::ControlJob request;
  request.set_what(wire::ControlJob::REQUEUE);
  return with_head(invocation, common, [&](HeadLink& head) {
    return send_each(
        head, invocation, common, jobs,
        [&](HeadLink& link, const std::string& word,
            int& code) -> Result<std::vector<std::uint64_t>> {
          const auto ids = changed_jobs(link, invocation, word, code);
          if (!ids || word.find('_') != word.npos) return ids;
          return requeued_tasks(link, ids->front());
        },
        request);
  });
}

}  // namespace score::scout
