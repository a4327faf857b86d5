// sccancel: ends jobs, or sends them a signal.
#include "base/text.hpp"
#include "scout/commands/commands.hpp"
#include "scout/session/session.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>

#include <chrono>
#include <vector>

namespace score::scout {

namespace {

constexpr Duration kNoLimit = std::chrono::hours(24 * 365);  // a grace may be long

struct CancelOptions {
  CommonOptions common;
  std::string signal;
  std::string grace;
  bool all = false;
  bool no_wait = false;
  std::vector<std::string> jobs;
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

// Of tasks that are to be sent a signal, the jobs that they have become.
Result<std::vector<JobWord>> running_tasks(HeadLink& head, const std::string& word) {
  const auto list = ask_words(head, {word});
  if (!list) return list.error();
  std::vector<JobWord> jobs;
  for (const auto& job : list->jobs()) {
    if (job.job() != job.array_job()) jobs.push_back({job.job()});
  }
  if (!jobs.empty()) return jobs;
  return fail(Errc::WrongState, "{} does not run", escape_terminal(word, 80));
}

Result<std::vector<JobWord>> chosen_jobs(HeadLink& head, const CancelOptions& options) {
  std::vector<JobWord> ids;
  for (const auto& word : options.jobs) {
    const auto id = parse_job_word(word);
    if (!id) return id.error();
    if (id->step) {
      const auto step = find_job(head, *id);
      if (!step) return step.error();
      ids.push_back({*step});
      continue;
    }
    if (options.signal.empty() || id->tasks.empty()) {
      ids.push_back(*id);
      continue;
    }
    const auto tasks = running_tasks(head, word);
    if (!tasks) return tasks.error();
    ids.insert(ids.end(), tasks->begin(), tasks->end());
  }
  if (!options.all) return ids;
  const auto list = list_jobs(head, wire::ListJobs());
  if (!list) return list.error();
  for (const auto& job : list->jobs()) {
    if (!is_final_state(job.state())) ids.push_back({job.job()});
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
  const auto jobs = chosen_jobs(head, options);
  if (!jobs) return jobs.error();
  // All are requested before the first answer is awaited, so that their graces run side by side.
  std::vector<std::uint64_t> tags;
  std::vector<std::uint64_t> ids;
  for (const auto& job : *jobs) {
    ids.push_back(job.job);
    tags.push_back(signal != 0 ? put_signal(head, job.job, signal)
                               : put_cancel(head, job, grace, !options.no_wait));
  }
  auto tag = tags.begin();
  const bool waits = signal == 0 && !options.no_wait;
  return for_each_job(invocation, options.common, ids, [&](std::uint64_t) -> Result<void> {
    const auto done = head.answer<wire::Done>(*tag++, waits ? kNoLimit : limits::kRequestDeadline);
    if (!done) return done.error();
    return {};
  });
}

}  // namespace

int sccancel_main(const Invocation& invocation) {
  CancelOptions options;
  CLI::App app;
  describe(app, invocation,
           "Ends jobs: TERM and CONT to every task, after the grace KILL to all that is left");
  add_server_option(app, options.common);
  add_json_option(app, options.common);
  app.add_option("-s,--signal", options.signal, "Only send this signal to the tasks")
      ->type_name("SIG");
  app.add_option("--grace", options.grace, "Time between TERM and KILL; 0: KILL at once")
      ->type_name("TIME");
  app.add_flag("--no-wait", options.no_wait,
               "Return when the request is accepted, not when the jobs have ended");
  app.add_flag("--all", options.all, "All of your active jobs");
  app.add_option("jobs", options.jobs,
                 "Their ids; 12_7 and 12_[1-5]: tasks of array 12; 7.0: step 0 of job 7")
      ->type_name("JOB");
  if (const auto code = parse(app, invocation)) return *code;
  if (options.jobs.empty() && !options.all) return complain(invocation, "which job? (try --help)");
  return with_head(invocation, options.common,
                   [&](HeadLink& head) { return cancel(head, invocation, options); });
}

}  // namespace score::scout
