// This file is tested by cluster_test.cpp.
#include "gang/head/requests.hpp"

#include "gang/schedule/request_check.hpp"
#include "gang/schedule/room.hpp"

namespace score::gang {

namespace limits = base::limits;
using base::Errc;
using base::fail;
using base::Result;

namespace {

constexpr int kMaxSignal = 64;

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
  }
  return {};
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
  if (is_step && jobs.at(request.inside).user != user) {
    return fail(Errc::Denied, "job {} belongs to another user", request.inside);
  }
  Job& job = jobs.add(id, user, request, *shape);
  if (is_step) jobs.at(request.inside).steps.edit().insert(id);
  job.allowed = allowed_nodes(p_.tables.nodes, request);
  job.submitted = step.now;
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
  return {};
}

Result<void> Requests::resume(JobId id, Step& step) {
  const auto found = checked(id, JobRequest::Resume);
  if (!found) return found.error();
  Job& job = **found;
  if (job.state == JobState::Running) return {};
  p_.tables.jobs.change(job, JobEvent::Resume, step);
  p_.idle.judge(job, step);
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
                         : check_request(p_.tables.nodes, job.request, p_.tables.config.overcommit);
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

}  // namespace score::gang
