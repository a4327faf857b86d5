// sccancel ends jobs, or sends them a signal.
#include "base/text.hpp"
#include "scout/commands/commands.hpp"
#include "scout/session/job_filter.hpp"
#include "scout/session/session.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <vector>

namespace score::scout {

namespace {

constexpr Duration kNoLimit = std::chrono::hours(24 * 365);  // a grace period may be long

struct CancelOptions {
  CommonOptions common;
  std::string signal;
  std::string grace;
  bool all = false;
  bool no_wait = false;
  JobFilter filter;
};

std::uint64_t put_signal(HeadLink& head, std::uint64_t job, int signal) {
  wire::SignalJob request;
  request.set_job(job);
  request.set_signal(signal);
  return head.put(request);
}

std::uint64_t put_cancel(HeadLink& head, const JobWord& job, Duration grace, bool wait) {
  wire::CancelJob request;
  request.set_job(job.job);
  request.set_tasks(job.tasks);
  request.set_grace_ns(grace.count());
  request.set_wait(wait);
  return head.put(request);
}

// Returns the jobs of array tasks that are to be sent a signal.
Result<std::vector<JobWord>> running_tasks(HeadLink& head, const std::string& word) {
  const auto found = find_words(head, {word});
  if (!found) return found.error();
  std::vector<JobWord> jobs;
  for (const auto& job : found->list.jobs()) {
    if (job.job() != job.array_job()) jobs.push_back({job.job()});
  }
  if (!jobs.empty()) return jobs;
  if (!found->missing.empty()) return found->missing.front();
  return fail(Errc::WrongState, "{} is not running", escape_terminal(word, 80));
}

Result<std::vector<JobWord>> jobs_of(HeadLink& head, const CancelOptions& options,
                                     const std::string& word) {
  const auto named = parse_job_word(word);
  if (!named) return named.error();
  if (named->step) {
    const auto step = find_job(head, *named);
    if (!step) return step.error();
    return std::vector<JobWord>{{*step}};
  }
  if (!options.signal.empty() && !named->tasks.empty()) return running_tasks(head, word);
  return std::vector<JobWord>{*named};
}

// Returns the named jobs that the filter selects, or those of all active jobs if none is named.
Result<std::vector<JobWord>> filtered_jobs(HeadLink& head, const Invocation& invocation,
                                           const CancelOptions& options, int& code) {
  FoundJobs found;
  if (options.filter.jobs().empty()) {
    wire::ListJobs request;
    request.set_all_users(options.filter.names_users());
    auto list = list_jobs(head, std::move(request));
    if (!list) return list.error();
    found.list = std::move(*list);
  } else {
    auto named = find_words(head, options.filter.jobs());
    if (!named) return named.error();
    found = std::move(*named);
  }
  code = report_errors(invocation, found.missing);
  std::vector<JobWord> ids;
  for (const auto& job : found.list.jobs()) {
    const bool is_chosen = !is_final_state(job.state()) && options.filter.matches(job);
    if (is_chosen) ids.push_back({job.job()});
  }
  if (!ids.empty() || !options.filter.chooses() || code != kExitOk) return ids;
  const std::string unknown = options.filter.unknown_users();
  if (!unknown.empty()) return fail(Errc::NotFound, "{}", unknown);
  print_error(invocation, "no active job matches");
  return ids;
}

// An unknown job is reported, and the other jobs are cancelled.
Result<std::vector<JobWord>> chosen_jobs(HeadLink& head, const Invocation& invocation,
                                         const CancelOptions& options, int& code) {
  if (options.all || options.filter.chooses()) {
    return filtered_jobs(head, invocation, options, code);
  }
  std::vector<JobWord> ids;
  for (const auto& word : options.filter.jobs()) {
    const auto jobs = jobs_of(head, options, word);
    if (!jobs && jobs.error().is(Errc::Closed)) return jobs.error();
    if (!jobs) {
      code = print_error(invocation, jobs.error());
      continue;
    }
    ids.insert(ids.end(), jobs->begin(), jobs->end());
  }
  return ids;
}

Result<int> cancel(HeadLink& head, const Invocation& invocation, const CancelOptions& options) {
  int signal = 0;
  Duration grace(-1);  // the cluster's default
  if (!options.signal.empty()) {
    const auto parsed = parse_signal(options.signal);
    if (!parsed) return parsed.error();
    signal = *parsed;
  }
  if (!options.grace.empty()) {
    const auto parsed = parse_duration(options.grace, BareNumber::Seconds);
    if (!parsed) return parsed.error().with_context("--grace {}", options.grace);
    grace = *parsed;
  }
  int code = kExitOk;
  const auto jobs = chosen_jobs(head, invocation, options, code);
  if (!jobs) return jobs.error();
  // All requests are sent before the first answer is awaited, so that the grace periods overlap.
  std::vector<std::uint64_t> tags;
  std::vector<std::uint64_t> ids;
  for (const auto& job : *jobs) {
    ids.push_back(job.job);
    tags.push_back(signal != 0 ? put_signal(head, job.job, signal)
                               : put_cancel(head, job, grace, !options.no_wait));
  }
  auto tag = tags.begin();
  const bool waits = signal == 0 && !options.no_wait;
  const auto wait = [&](std::uint64_t) -> Result<void> {
    const auto done = head.answer<wire::Done>(*tag++, waits ? kNoLimit : limits::kRequestDeadline);
    if (!done) return done.error();
    return {};
  };
  const int ended = for_each_job(invocation, options.common, ids, wait);
  return ended != kExitOk ? ended : code;
}

}  // namespace

int sccancel_main(const Invocation& invocation) {
  CancelOptions options;
  CLI::App app;
  describe(
      app, invocation,
      "Ends jobs: sends TERM and CONT to every task, and KILL after the grace period to the rest");
  add_server_option(app, options.common);
  add_json_option(app, options.common);
  app.add_option("-s,--signal", options.signal, "Only send this signal to the tasks")
      ->type_name("SIG");
  app.add_option("--grace", options.grace, "Time between TERM and KILL; 0: KILL at once")
      ->type_name("TIME");
  app.add_flag("--no-wait", options.no_wait,
               "Return when the request is accepted, not when the jobs have ended");
  app.add_flag("--all", options.all, "End all of your active jobs");
  options.filter.add_options(app,
                             "Job ids; 12_7 and 12_[1-5]: tasks of array 12; 7.0: step 0 of job 7");
  if (const auto code = parse(app, invocation)) return *code;
  if (const auto read = options.filter.read(); !read) return print_error(invocation, read.error());
  if (options.filter.jobs().empty() && !options.filter.chooses() && !options.all) {
    return print_error(invocation,
                       fmt::format("no job given; give its id, or select jobs with --user, --name, "
                                   "--state, --nodelist or --all (try {} --help)",
                                   invocation.name));
  }
  if (options.all && !options.filter.jobs().empty()) {
    return print_error(invocation, "--all and job ids cannot be given together");
  }
  return with_head(invocation, options.common,
                   [&](HeadLink& head) { return cancel(head, invocation, options); });
}

}  // namespace score::scout
