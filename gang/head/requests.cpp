// This file is tested by cluster_test.cpp.
#include "gang/head/requests.hpp"

#include "gang/lifecycle/text.hpp"
#include "gang/schedule/request_check.hpp"
#include "gang/schedule/room.hpp"

#include <utility>

namespace score::gang {

namespace limits = base::limits;
using base::Errc;
using base::fail;
using base::Result;

namespace {

constexpr int kMaxSignal = 64;

// Returns true if all nodes of a running job have started their tasks.
bool has_begun(const Members& members) {
  return members.not_begun().empty() && members.in(Member::Prepared).empty() &&
         members.in(Member::Asked).empty();
}

const char* reason_of(EndCause cause) {
  switch (cause) {
    case EndCause::User:
      return "cancelled by its owner";
    case EndCause::Operator:
      return "cancelled by an operator";
    case EndCause::FrontEndGone:
      return "its front end exited or lost its connection";
    case EndCause::Shutdown:
      return "the cluster was shut down";
    case EndCause::TimeLimit:
      return "time limit reached";
  }
  return "";
}

}  // namespace

Result<void> Requests::check(JobId id, JobRequest request, std::int64_t number) const {
  const auto found = p_.tables.jobs.live(id);
  if (!found) return found.error();
  const Job& job = **found;
  const auto must_be = [&job](bool is_so, const char* wanted) -> Result<void> {
    if (is_so) return {};
    return fail(Errc::WrongState, "job {} is {}, not {}", job.id, to_string(job.state), wanted);
  };
  const bool is_suspended = job.state == JobState::Suspended;
  const bool has_tasks = is_suspended || job.state == JobState::Running;
  switch (request) {
    case JobRequest::Signal:
      if (has_tasks && (number < 1 || number > kMaxSignal)) {
        return fail(Errc::Malformed, "{} is not a signal number", number);
      }
      return must_be(has_tasks, "running");
    case JobRequest::Suspend:
      if (job.overlay()) return fail(Errc::Unsupported, "job {} is outside the timetable", id);
      if (job.is_step()) {
        return fail(Errc::Unsupported, "a step is suspended with its job; suspend job {} instead",
                    job.request.inside);
      }
      return must_be(has_tasks, "running");
    case JobRequest::Resume:
      if (auto may = p_.parking.check_resume(job); is_suspended && !may) return may;
      if (is_suspended) return p_.placer.licenses().check_resume(job);
      return must_be(has_tasks, "suspended");
    case JobRequest::Hold:
    case JobRequest::Release:
      return must_be(job.state == JobState::Pending, "pending");
    case JobRequest::SetWeight:
      if (number >= limits::kMinWeight && number <= limits::kMaxWeight) return {};
      return fail(Errc::TooLarge, "weight {} is outside {} ... {}", number, limits::kMinWeight,
                  limits::kMaxWeight);
    case JobRequest::SetPriority:
      return {};
    case JobRequest::Requeue:
      if (auto may = check_requeue(job); !may) return may;
      return must_be(has_tasks || job.state == JobState::Launching, "running");
  }
  return {};
}

Result<void> Requests::check_requeue(const Job& job) const {
  if (job.overlay()) {
    return fail(Errc::Unsupported, "job {} is a scout command, which is not requeued", job.id);
  }
  if (job.is_step()) {
    return fail(Errc::Unsupported, "a step is requeued with its job; requeue job {} instead",
                job.request.inside);
  }
  if (job.request.requeue != base::Requeue::Yes) {
    return fail(Errc::WrongState,
                "job {} was submitted without --requeue; score change {} requeue=yes allows it to "
                "run again",
                job.id, job.id);
  }
  if (job.is_requeued) return fail(Errc::WrongState, "job {} is being requeued already", job.id);
  if (!job.limit.empty()) return fail(Errc::WrongState, "job {} is ending: {}", job.id, job.limit);
  if (p_.ending.has_place(job)) return {};
  return fail(Errc::TooLarge, "job {} cannot be launched once more", job.id);
}

Result<Job*> Requests::checked(JobId id, JobRequest request, std::int64_t number) {
  if (auto possible = check(id, request, number); !possible) return possible.error();
  return &p_.tables.jobs.at(id);
}

// Places the job at once if possible; otherwise it stays in the queue.
void Requests::try_new(Job& job, Step& step) {
  if (p_.placer.try_new(job)) return p_.launching.launch(job, step);
  step.job_changed(job.id);
}

Result<void> Requests::submit(JobId id, UserId user, const base::ResourceRequest& request,
                              Step& step) {
  JobTable& jobs = p_.tables.jobs;
  if (jobs.contains(id) || id == JobId{0}) return fail(Errc::Exists, "job {} exists already", id);
  if (jobs.live_count() >= limits::kMaxActiveJobs) {
    return fail(Errc::Busy, "{} jobs are queued or running already", jobs.live_count());
  }
  const bool is_step = request.inside != JobId{0};
  const auto shape = is_step ? check_step(jobs, p_.tables.nodes, request)
                             : check_request(p_.tables.nodes, request, p_.tables.config.overcommit);
  if (!shape) return shape.error();
  if (auto has = p_.placer.licenses().check(request); !has) return has;
  if (is_step && jobs.at(request.inside).user != user) {
    return fail(Errc::Denied, "job {} belongs to another user", request.inside);
  }
  Job& job = jobs.add(id, user, request, *shape);
  if (is_step) jobs.at(request.inside).steps.edit().insert(id);
  job.allowed = allowed_nodes(p_.tables.nodes, request);
  job.submitted = step.now;
  watch_switches(job, p_.tables, step);
  if (!request.held) {
    try_new(job, step);
  } else {
    step.job_changed(id);
  }
  return {};
}

Result<void> Requests::cancel(JobId id, EndCause cause, Step& step) {
  const auto job = p_.tables.jobs.live(id);
  if (!job) return job.error();
  if (cause == EndCause::TimeLimit) {
    p_.ending.cancel(**job, {JobState::TimedOut, (*job)->limit, base::kExitLimit}, step);
  } else {
    p_.ending.cancel(**job, {JobState::Cancelled, reason_of(cause), base::kExitInterrupted}, step);
  }
  return {};
}

void Requests::send_signal(const Job& job, int signal, Step& step) {
  for (const std::size_t m : job.members->in(Member::Started)) {
    p_.tables.nodes.send(job.cells.nodes[m], base::SignalTasks{job.attempt(), signal}, step);
  }
}

Result<void> Requests::signal(JobId id, int signal, Step& step) {
  const auto found = checked(id, JobRequest::Signal, signal);
  if (!found) return found.error();
  send_signal(**found, signal, step);
  for (const JobId id_of_step : *(*found)->steps) {
    send_signal(p_.tables.jobs.at(id_of_step), signal, step);
  }
  return {};
}

Result<void> Requests::suspend(JobId id, Step& step) {
  const auto found = checked(id, JobRequest::Suspend);
  if (!found) return found.error();
  Job& job = **found;
  if (job.state == JobState::Suspended) return {};
  job.forget_activity();
  p_.tables.jobs.change(job, JobEvent::Suspend, step);
  p_.placer.suspended(job);
  return {};
}

Result<void> Requests::resume(JobId id, Step& step) {
  const auto found = checked(id, JobRequest::Resume);
  if (!found) return found.error();
  Job& job = **found;
  if (job.state == JobState::Running) return {};
  p_.placer.resumed(job);
  p_.tables.jobs.change(job, JobEvent::Resume, step);
  p_.parking.resumed(job, step);
  p_.idle.judge(job, step);
  return {};
}

// A step is stopped with its job, in whose slices it runs. Tasks are forked in these slices, too,
// so a job that is stopped before all of its nodes have begun would not begin.
Result<void> Requests::set_stopped(JobId id, bool is_stopped, Step& step) {
  const auto found = p_.tables.jobs.live(id);
  if (!found) return found.error();
  Job& job = p_.tables.jobs.at(p_.tables.jobs.gang_of(**found).id);
  if (is_stopped && job.overlay()) {
    return fail(Errc::Unsupported, "job {} is outside the timetable, so it cannot be stopped", id);
  }
  if (is_stopped && !job.is_managed()) {
    return fail(Errc::WrongState, "job {} is {}, not running", id, to_string(job.state));
  }
  if (is_stopped && !has_begun(*(*found)->members)) {
    return fail(Errc::Busy, "job {} is starting its tasks; try again", id);
  }
  if (is_stopped && job.is_stopped()) {  // the end of one stop would end the other one too early
    return fail(Errc::Busy,
                "job {} is stopped already, for a save or to read its stacks; try again", id);
  }
  const std::uint64_t wanted = is_stopped ? job.attempts : 0;
  if (std::exchange(job.stopped_attempt, wanted) == wanted) return {};
  p_.tables.jobs.mark_changed();
  step.job_changed(job.id);
  return {};
}

Result<void> Requests::hold(JobId id, Step& step) {
  const auto job = checked(id, JobRequest::Hold);
  if (!job) return job.error();
  (*job)->request.held = true;
  p_.placer.withdraw(**job);
  step.job_changed(id);
  return {};
}

Result<void> Requests::release(JobId id, Step& step) {
  const auto found = checked(id, JobRequest::Release);
  if (!found) return found.error();
  Job& job = **found;
  if (!job.request.held) return {};
  job.request.held = false;
  if (job.is_paused) return {};
  const auto shape = job.is_step()
                         ? base::Result<Shape>(job.shape)
                         : check_waiting(p_.tables.nodes, job.request, p_.tables.config.overcommit);
  if (shape) {
    job.shape = *shape;
    try_new(job, step);
  } else {  // more nodes have become known
    p_.ending.end(job, {JobState::LaunchFailed, shape.error().context()}, step);
  }
  return {};
}

Result<void> Requests::set_weight(JobId id, std::uint32_t weight, Step& step) {
  const auto job = checked(id, JobRequest::SetWeight, weight);
  if (!job) return job.error();
  (*job)->request.weight = weight;
  p_.tables.jobs.mark_changed();
  step.job_changed(id);
  return {};
}

// A waiting job gets its new place in the queue at once; a running one uses it if it loses a node.
Result<void> Requests::set_priority(JobId id, std::int32_t priority, Step& step) {
  const auto job = checked(id, JobRequest::SetPriority);
  if (!job) return job.error();
  p_.placer.set_priority(**job, priority);
  step.job_changed(id);
  return {};
}

// ---- changes of the request -------------------------------------------------------------------

// A limit that the job has exceeded already would end it at once, which cancel() does better.
Result<void> Requests::check_placed(const Job& job, const base::ResourceRequest& wanted,
                                    TimePoint now) const {
  const auto is_exclusive = [](const auto& r) { return r.queue == base::Queue::Exclusive; };
  if (is_exclusive(job.request) != is_exclusive(wanted)) {
    return fail(Errc::Denied, "a running job can neither enter nor leave queue exclusive");
  }
  const auto row = p_.placer.matrix().position(job.home);
  const bool is_in_extra_row = job.is_urgent() && row && *row >= p_.tables.config.max_slots;
  if (is_in_extra_row && wanted.queue != base::Queue::Urgent) {
    return fail(Errc::Denied, "the job runs in a row for jobs of queue urgent");
  }
  const Duration ran = now - job.started.value_or(now);
  const Duration had = p_.publisher.scheduled(job, now);
  const auto is_over = [](Duration before, Duration limit, Duration used) {
    return limit != before && limit > Duration::zero() && limit <= used;
  };
  if (is_over(job.request.wall_limit, wanted.wall_limit, ran)) {
    return fail(Errc::Denied, "the job has run for {} already", seconds(ran));
  }
  if (is_over(job.request.scheduled_limit, wanted.scheduled_limit, had)) {
    return fail(Errc::Denied, "the job has been scheduled for {} already", seconds(had));
  }
  const auto before = longest_of(job.request, p_.tables.config.max_slots);
  const auto longest = longest_of(wanted, p_.tables.config.max_slots);
  const bool is_raised = before && (!longest || *longest > *before);
  if (!is_raised) return {};
  Occupant occupant = p_.placer.occupant(job);
  occupant.bound = longest;
  if (longest) occupant.bound = *longest - ran;
  for (const NodeIndex node : job.cells.nodes) {
    const Reservation* r = p_.tables.calendar.blocking(occupant, node);
    if (r == nullptr) continue;
    return fail(Errc::Denied, "the job could still run when reservation {} begins on {}", r->name,
                p_.tables.nodes.name(node));
  }
  return {};
}

Result<void> Requests::check_change(JobId id, const base::ResourceRequest& request,
                                    TimePoint now) const {
  const auto found = p_.tables.jobs.live(id);
  if (!found) return found.error();
  const Job& job = **found;
  if (job.state == JobState::Completing) {
    return fail(Errc::WrongState, "job {} is ending", id);
  }
  if (!job.limit.empty()) return fail(Errc::WrongState, "job {} is ending: {}", id, job.limit);
  if (job.placed) return check_placed(job, request, now);
  if (job.is_step()) return {};
  const auto shape = check_request(p_.tables.nodes, request, p_.tables.config.overcommit);
  if (!shape) return shape.error();
  return {};
}

Result<void> Requests::change(JobId id, const base::ResourceRequest& request, Step& step) {
  if (auto possible = check_change(id, request, step.now); !possible) return possible;
  Job& job = p_.tables.jobs.at(id);
  const auto is_raised = [](Duration before, Duration after) {
    return before > Duration::zero() && (after == Duration::zero() || after > before);
  };
  if (is_raised(job.request.wall_limit, request.wall_limit) ||
      is_raised(job.request.scheduled_limit, request.scheduled_limit)) {
    job.is_warned = false;
  }
  if (!job.placed && !job.is_step()) {
    const auto shape = check_request(p_.tables.nodes, request, p_.tables.config.overcommit);
    if (shape) job.shape = *shape;
  }
  p_.placer.change(job, request);
  step.job_changed(id);
  if (!job.started || !job.placed) return {};
  p_.tables.deadlines.clear(id, DeadlineKind::Wall);
  if (request.wall_limit > Duration::zero()) {
    p_.tables.deadlines.set(id, DeadlineKind::Wall, *job.started + request.wall_limit);
  }
  p_.tables.deadlines.set(id, DeadlineKind::Scheduled, step.now);
  p_.tables.deadlines.set(id, DeadlineKind::Signal, step.now);
  return {};
}

// ---- requeue by request -----------------------------------------------------------------------

// However the attempt ends from now on, the job returns to the queue.
Result<void> Requests::requeue(JobId id, std::string reason, Step& step) {
  const auto found = checked(id, JobRequest::Requeue);
  if (!found) return found.error();
  Job& job = **found;
  job.is_requeued = job.is_stopping = true;
  job.lost = std::move(reason);
  step.job_changed(id);
  return {};
}

Result<void> Requests::end_attempt(JobId id, Step& step) {
  const auto found = p_.tables.jobs.live(id);
  if (!found) return found.error();
  Job& job = **found;
  p_.ending.end(job, {JobState::Cancelled, "requeued: " + job.lost, base::kExitInterrupted}, step);
  return {};
}

// ---- the signal before a limit ----------------------------------------------------------------

// An allocation passes the signal to its steps, or to its script alone, as Slurm does.
void Requests::warn(Job& job, Step& step) {
  const int signal = job.request.limit_signal;
  job.is_warned = true;
  if (!job.request.allocation || job.request.limit_signal_script) send_signal(job, signal, step);
  if (job.request.limit_signal_script) return;
  for (const JobId id : *job.steps) send_signal(p_.tables.jobs.at(id), signal, step);
}

}  // namespace score::gang
