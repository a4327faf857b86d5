// This file is tested by lifecycle_test.cpp and gang/head/cluster_test.cpp.
#include "gang/lifecycle/ending.hpp"

#include "gang/schedule/request_check.hpp"

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

namespace score::gang {

namespace {

// Returns true for signals that a task does not send to itself because its peers have gone.
bool is_crash(int signal) {
  constexpr std::array kCrashes{SIGKILL, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
  return std::ranges::find(kCrashes, signal) != kCrashes.end();
}

// The first launch is repeated at once, perhaps on other nodes; the others wait, so that all of
// them outlast a restart of a daemon, a full disk that is cleaned, or a burst of processes.
Duration pause_before(std::uint32_t relaunches) {
  constexpr std::array kPauses = {std::chrono::seconds{0}, std::chrono::seconds{4},
                                  std::chrono::seconds{16}, std::chrono::seconds{60}};
  return kPauses.at(std::min<std::size_t>(relaunches - 1, kPauses.size() - 1));
}

// The limit is per node; no sum over nodes overflows.
constexpr Duration kMostFilled = std::chrono::hours{24 * 365};

// Returns `reported`, the exit code from a node, if it is a failure (1 ... 255), else `otherwise`.
int failure_code(int reported, int otherwise) {
  return reported >= 1 && reported <= 255 ? reported : otherwise;
}

}  // namespace

const std::string& Ending::name_of(const Job& job, std::size_t member) const {
  return tables_.nodes.name(job.cells.nodes[member]);
}

// ---- what nodes report ------------------------------------------------------------------------

bool Ending::record(Job& job, std::size_t member, const base::TaskExit& exit) {
  const JobOutcome::Recorded recorded = job.outcome.edit().record(member, exit);
  if (recorded == JobOutcome::Recorded::Impossible) ++tables_.counters.stale_reports;
  return recorded == JobOutcome::Recorded::New;
}

void Ending::task_ended(Job& job, std::size_t member, const base::TaskExit& exit, Step& step) {
  if (record(job, member, exit)) judge(job, member, exit, step);
}

std::string Ending::failure_of(const Job& job, std::size_t member,
                               const base::TaskExit& exit) const {
  const std::string how = exit.signal != 0 ? fmt::format("was killed by signal {}", exit.signal)
                                           : fmt::format("exited with {}", exit.code);
  return fmt::format("rank {} on {} {}", exit.rank, name_of(job, member), how);
}

// Returns, for a job that kept going, the lowest rank that failed and the number of other failures.
std::string Ending::failures_of(const Job& job) const {
  const auto failed = job.outcome->failed();
  if (!failed) return {};
  std::string text = failure_of(job, failed->member, failed->exit);
  if (failed->count > 1) text += fmt::format(", and {} more failed", failed->count - 1);
  return text;
}

void Ending::judge(Job& job, std::size_t member, const base::TaskExit& exit, Step& step) {
  if (job.keep_going || job.is_stopping || code_of(exit) == 0) return;
  const bool is_own_end = !job.outcome->ending() || exit.was_ending;
  blame(job,
        {failure_of(job, member, exit), code_of(exit), exit.ended,
         is_own_end && is_crash(exit.signal)},
        step);
}

void Ending::blame(Job& job, TaskFailure failure, Step& step) {
  if (job.outcome->ending()) return job.outcome.edit().explain(std::move(failure));
  job.outcome.edit().decide(std::move(failure));
  carry_out(job, step);
}

void Ending::aborted(Job& job, std::size_t member, const base::AbortRequested& message,
                     Step& step) {
  if (message.left && job.is_stopping) return;
  std::string reason = fmt::format("rank {} on {} aborted with {}", message.rank,
                                   name_of(job, member), message.code);
  if (!message.message.empty()) reason += ": " + message.message;
  blame(job, {std::move(reason), failure_code(message.code, 1), message.asked, message.left}, step);
}

void Ending::lost_node(Job& job, const std::string& reason, base::TimePoint since, Step& step) {
  if (job.outcome.edit().blame_loss(reason, since)) {
    job.fault = Fault::Machine;
    step.job_changed(job.id);
  }
  ++job.usage.nodes_unknown;
  end(job, {JobState::NodeFailed, reason, base::kExitError, Fault::Machine}, step);
}

void Ending::refused(Job& job, std::size_t member, const base::Refused& message, Step& step) {
  const bool is_launch = job.state == JobState::Launching;
  job.members.edit().note_run(member, false);
  end(job,
      {is_launch ? JobState::LaunchFailed : JobState::NodeFailed,
       fmt::format("{}: {}", name_of(job, member), message.reason),
       failure_code(message.exit_code, base::kExitError),
       message.may_retry || !is_launch ? Fault::Machine : Fault::Job},
      step);
  gone(job, member, step);
}

void Ending::exited(Job& job, std::size_t member, const base::Exited& message, Step& step) {
  if (message.filled > Duration::zero()) {
    job.filled += std::min(message.filled, kMostFilled);
    step.job_changed(job.id);
  }
  job.usage += message.usage;
  std::vector<base::TaskExit> fresh;
  for (const base::TaskExit& exit : message.exits) {
    if (record(job, member, exit)) fresh.push_back(exit);
  }
  const bool has_run = !message.exits.empty();
  if (has_run || !job.outcome->has_all_exits_of(member)) {
    job.members.edit().note_run(member, has_run);
  }
  const std::string& name = name_of(job, member);
  const std::string why = message.reason.empty() ? "ended before it was started" : message.reason;
  if ((*job.members)[member] != Member::Started) {
    end(job,
        {JobState::LaunchFailed, fmt::format("{}: {}", name, why), base::kExitError,
         Fault::Machine},
        step);
  } else if (message.oom_kills > 0) {
    out_of_memory(job, fmt::format("{}: {}", name, why), message, step);
  } else if (!message.reason.empty()) {
    const int code = job.outcome->exit_code();
    end(job,
        {JobState::Failed, fmt::format("{}: {}", name, why), code != 0 ? code : base::kExitError},
        step);
  }
  for (const base::TaskExit& exit : fresh) judge(job, member, exit, step);
  if (!job.outcome->has_all_exits_of(member)) {
    end(job,
        {JobState::NodeFailed, fmt::format("{} did not report how its tasks ended", name),
         base::kExitError, Fault::Machine},
        step);
  }
  gone(job, member, step);
}

// The tasks of other nodes continue if all tasks of the node ended well. The job gets the state
// OutOfMemory when they have ended.
void Ending::out_of_memory(Job& job, const std::string& reason, const base::Exited& message,
                           Step& step) {
  if (job.outcome.edit().blame_memory(reason)) step.job_changed(job.id);
  const auto is_well = [](const base::TaskExit& exit) { return code_of(exit) == 0; };
  if (std::ranges::all_of(message.exits, is_well)) return;
  const int code = job.outcome->exit_code();
  end(job, {JobState::OutOfMemory, reason, code != 0 ? code : base::kExitError}, step);
}

void Ending::gone(Job& job, std::size_t member, Step& step) {
  if (!job.members.edit().gone(member)) return;
  if (job.members->remaining() == 0) return finish(job, step);
  meetings_.hold_complete(job, step);
}

// ---- the decision -----------------------------------------------------------------------------

void Ending::end(Job& job, End end, Step& step) {
  if (job.outcome->ending() || base::is_final(job.state)) return;
  job.fault = end.fault;
  job.outcome.edit().decide(end.state, std::move(end.reason), end.exit_code);
  carry_out(job, step);
}

void Ending::cancel(Job& job, End end, Step& step) {
  // Nodes that have not answered yet may still say that no task has run.
  const bool may_return = retry_of(job, job.members->has_run()) != Retry::None && has_place(job);
  job.is_requeued = false;
  if (!may_return) return this->end(job, std::move(end), step);
  job.fault = Fault::Job;
  job.outcome.edit().cancel_requeue(end.state, end.reason, end.exit_code);
  step.job_changed(job.id);
}

// The outcome knows the end, so the job leaves the queue and the timetable.
void Ending::decide(Job& job, Step& step) {
  placer_.withdraw(job);
  publisher_.stop(job, step.now);
  job.forget_activity();
  job.is_paused = false;
  tables_.jobs.change(job, JobEvent::End, step);
  end_steps(job, step);
}

// The job is Completing, so that it does not end before its last step has.
void Ending::end_steps(Job& job, Step& step) {
  const std::set<JobId> steps = *job.steps;
  for (const JobId id : steps) {
    end(tables_.jobs.at(id),
        {JobState::Cancelled, fmt::format("job {} has ended", job.id), base::kExitInterrupted},
        step);
  }
}

// A job that has ended stays until its last step leaves it.
void Ending::leave_allocation(const Job& job, Step& step) {
  Job* allocation = job.is_step() ? tables_.jobs.find(job.request.inside) : nullptr;
  if (allocation == nullptr) return;
  allocation->steps.edit().erase(job.id);
  allocation->steps_usage.add_step(job.usage);
  step.job_changed(allocation->id);  // on disk: nodes do not report an ended step again
  const bool is_over = allocation->state == JobState::Completing && allocation->steps->empty() &&
                       allocation->members->remaining() == 0;
  if (is_over) finish(*allocation, step);
}

void Ending::carry_out(Job& job, Step& step) {
  decide(job, step);
  if (job.state != JobState::Completing) return;  // it ended with its last step
  if (job.members->remaining() == 0) return finish(job, step);
  tables_.deadlines.clear(job.id);
  tables_.deadlines.set(job.id, DeadlineKind::Kill,
                        step.now + tables_.config.kill_deadline + tables_.config.epilog_limit);
  for (std::size_t m = 0; m < job.members->count(); ++m) {
    if (!job.members->has_tasks(m)) continue;
    tables_.nodes.send(job.cells.nodes[m], base::KillTasks{job.attempt()}, step);
  }
}

// Runs when nothing of the attempt is left.
void Ending::finish(Job& job, Step& step) {
  if (!job.outcome->ending()) {  // all tasks ended by themselves
    job.outcome.edit().decide_by_exits(failures_of(job));
    decide(job, step);
  }
  if (job.state != JobState::Completing || !job.steps->empty()) return;
  tables_.deadlines.clear(job.id);
  const Retry retry = retry_of(job, job.members->has_run());
  if (retry != Retry::None && has_place(job)) return requeue(job, retry, step);
  tables_.jobs.end(job, step);
  ++tables_.counters.jobs_ended.at(static_cast<std::size_t>(job.state));
  clear_attempt(job, step);
  leave_allocation(job, step);
}

void Ending::clear_attempt(Job& job, Step& step) {
  if (!job.placed) return;
  meetings_.forget(job.attempt());
  if (job.parked->is_away()) job.parked.edit().end_absence(step.now);
  placer_.unplace(job);
  for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
    const NodeIndex node = job.cells.nodes[m];
    // Hooks of the site run for the steps there, and the epilog when the job has ended.
    const bool has_hooks = tables_.config.epilog_limit > Duration::zero();
    if ((*job.members)[m] == Member::Bare && !has_hooks) continue;
    if (tables_.nodes[node].zombies.contains(job.attempt())) continue;
    tables_.nodes.send(node, base::ForgetTasks{job.attempt()}, step);
  }
}

// ---- once more --------------------------------------------------------------------------------

// The tasks of a step or of an overlay job may depend on others that went on, so neither restarts.
Retry Ending::retry_of(const Job& job, bool has_run) const {
  if (!job.outcome->ending()) return Retry::None;
  if (job.is_requeued) return Retry::Restart;
  const bool may_restart = job.request.requeue == base::Requeue::Yes && job.has_row();
  return retry_after({job.fault, has_run, may_restart, job.relaunches,
                      job.restarts - std::min(job.restarts, job.asked_restarts)},
                     tables_.config.max_requeues);
}

bool Ending::is_untried(const Job& job) const {
  return job.state == JobState::Completing &&
         retry_of(job, job.members->may_have_run()) == Retry::Launch && has_place(job);
}

// Attempts have numbers of their own, and these are limited. A job that can no longer run, because
// nodes came back smaller or not at all, would wait for ever.
bool Ending::has_place(const Job& job) const {
  if (std::max(job.attempts, job.newest_seen) + 1 >= base::kAttemptsPerJob) return false;
  if (job.is_step()) {
    const Job* allocation = tables_.jobs.find(job.request.inside);
    return allocation != nullptr && allocation->placed && !allocation->outcome->ending();
  }
  return check_waiting(tables_.nodes, job.request, tables_.config.overcommit).has_value();
}

// Puts the job in its old place in the queue, as if it had never run: nothing of the lost attempt
// counts.
void Ending::requeue(Job& job, Retry retry, Step& step) {
  ++(retry == Retry::Launch ? job.relaunches : job.restarts);
  if (std::exchange(job.is_requeued, false)) {
    ++job.asked_restarts;
    job.is_stopping = false;
  } else {
    const std::vector<std::string>& reasons = job.outcome->reasons();
    job.lost = reasons.empty() ? std::string() : reasons.front();
  }
  job.is_warned = false;
  tables_.jobs.change(job, JobEvent::Requeue, step);
  clear_attempt(job, step);
  job.fault = Fault::Job;
  job.outcome.reset();
  job.time.reset();
  job.parked.reset();
  job.filled = Duration::zero();
  job.usage = {};
  job.started.reset();
  job.shares_channel = false;
  job.members.reset();
  job.cells = {};
  job.tasks_on_node.clear();
  if (!job.is_step()) {
    const auto shape = check_waiting(tables_.nodes, job.request, tables_.config.overcommit);
    if (shape) job.shape = *shape;
  }
  const Duration pause = retry == Retry::Launch ? pause_before(job.relaunches) : Duration::zero();
  job.is_paused = pause > Duration::zero();
  if (job.is_paused) {
    tables_.deadlines.set(job.id, DeadlineKind::Relaunch, step.now + pause);
  } else if (!job.request.held) {
    placer_.enqueue(job);
  }
}

void Ending::pause_over(Job& job) {
  if (!std::exchange(job.is_paused, false)) return;
  if (job.state == JobState::Pending && !job.request.held) placer_.enqueue(job);
}

}  // namespace score::gang
