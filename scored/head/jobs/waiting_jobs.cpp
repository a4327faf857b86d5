#include "scored/head/jobs/waiting_jobs.hpp"

#include "base/os/log.hpp"

#include <algorithm>
#include <utility>

namespace score::head {
namespace {

// The wall clock can be set, so it is read at least this often.
constexpr Duration kLongestSleep = 10s;

}  // namespace

Standing WaitingJobs::standing_of(JobId id) const {
  if (const Job* job = head_.jobs.find(id)) {
    const JobState state = job->progress.state;
    if (job->ended) {
      return {state == JobState::Completed ? Progress::Ok : Progress::NotOk, job->progress.started};
    }
    const bool has_started = job->progress.started != WallTime() || job->progress.restarts > 0;
    return {has_started ? Progress::Started : Progress::Waiting, job->progress.started};
  }
  const auto ended = head_.reader.outcome(id);
  if (!ended) return Progress::Unknown;
  return {ended->state == JobState::Completed ? Progress::Ok : Progress::NotOk, ended->started};
}

Status WaitingJobs::check(const Conditions& conditions, Duration wall_limit) const {
  for (const Dependency& dependency : conditions.after) {
    if (standing_of(dependency.job).progress != Progress::Unknown) continue;
    return fail(Errc::NotFound, "{}: no job {}", name_of(dependency), dependency.job);
  }
  if (conditions.deadline == WallTime()) return {};
  const WallTime earliest = std::max(head_.runner.wall(), conditions.begin) + wall_limit;
  if (conditions.deadline > earliest) return {};
  return fail(Errc::Malformed, "the deadline {} is before the job could end, at {} at the earliest",
              format_wall(conditions.deadline), format_wall(earliest));
}

std::vector<std::string> WaitingJobs::foresee(const Conditions& conditions, UserId user,
                                              const std::string& name) const {
  if (conditions.empty()) return {};
  DependencyTracker tracker;
  for (const auto& [id, other] : head_.jobs.all()) {
    if (!conditions.singleton) break;
    const bool is_step = other.info.step_of != JobId(0);
    const bool counts =
        !other.ended && !is_step && other.info.user == user && other.info.name == name;
    if (counts) tracker.add({id, user, name, {}, {}, false}, head_.runner.wall(), {});
  }
  const JobId next(UINT64_MAX);
  tracker.add({next, user, name, conditions, {}, false}, head_.runner.wall(),
              [this](JobId id) { return standing_of(id); });
  return tracker.reasons(next);
}

DependencyTracker::NewJob WaitingJobs::described(const Job& job) {
  DependencyTracker::NewJob added;
  added.id = job.info.id;
  added.user = job.info.user;
  added.name = job.info.name;
  if (!job.info.conditions.empty()) {
    auto conditions = unpack_conditions(job.info.conditions);
    if (!conditions) {
      log_error("Cannot read the conditions of job", kv("job", job.info.id),
                kv("err", conditions.error()));
    } else {
      added.conditions = std::move(*conditions);
    }
    if (wire::ResourceRequest resources; resources.ParseFromString(job.info.resources.str())) {
      added.wall_limit = Duration(resources.wall_limit_ns());
    }
  }
  added.has_started = job.progress.state != JobState::Pending || job.progress.restarts > 0 ||
                      job.progress.started != WallTime();
  return added;
}

bool WaitingJobs::add(Job& job) {
  if (job.info.step_of != JobId(0)) return false;
  const bool waits = tracker_.add(described(job), head_.runner.wall(),
                                  [this](JobId id) { return standing_of(id); });
  if (waits) job.waits = tracker_.reasons(job.info.id);
  if (!job.info.conditions.empty()) head_.alarm.at(next_deadline());
  return waits;
}

bool WaitingJobs::change(Job& job, const std::string& old_name) {
  if (job.info.step_of != JobId(0)) return false;
  const bool waits = tracker_.change(described(job), old_name, head_.runner.wall(),
                                     [this](JobId id) { return standing_of(id); });
  job.waits = waits ? tracker_.reasons(job.info.id) : std::vector<std::string>();
  head_.alarm.at(head_.runner.now());  // other jobs of its name may go on
  return waits;
}

void WaitingJobs::began(const Job& job) {
  if (job.progress.started == WallTime()) return;  // it has a place, but its tasks do not run
  tracker_.started(job.info.id, job.progress.started);
  settle();
}

void WaitingJobs::ended(const Job& job) {
  tracker_.ended(job.info.id, job.info.user, job.info.name,
                 job.progress.state == JobState::Completed);
  settle();
}

void WaitingJobs::tick() {
  settle();
}

std::optional<TimePoint> WaitingJobs::next_deadline() const {
  const auto next = tracker_.next_time();
  if (!next) return std::nullopt;
  return head_.runner.now() + std::clamp<Duration>(*next - head_.runner.wall(), 0s, kLongestSleep);
}

// A decision may cause further decisions; those are made after it, never within it.
void WaitingJobs::settle() {
  if (std::exchange(is_settling_, true)) return;
  for (auto decisions = tracker_.decide(head_.runner.wall()); !decisions.empty();
       decisions = tracker_.decide(head_.runner.wall())) {
    for (const WaitDecision& decision : decisions) carry_out(decision);
  }
  is_settling_ = false;
  head_.alarm.at(next_deadline());
}

void WaitingJobs::carry_out(const WaitDecision& decision) {
  Job* job = head_.jobs.find(decision.job);
  if (job == nullptr || job->ended) return;
  switch (decision.what) {
    case WaitDecision::What::Go:
      return go(*job);
    case WaitDecision::What::Stays:
      job->waits = tracker_.reasons(decision.job);
      head_.runner.touch(decision.job);
      return head_.runner.perform({});
    case WaitDecision::What::Never:
    case WaitDecision::What::TooLate:
      if (job->info.is_array()) return arrays_.end(*job, decision.why, Duration(0));
      return life_.end_waiting(*job, decision.why);
    case WaitDecision::What::Deadline:
      if (job->info.is_array()) {
        return arrays_.end(*job, decision.why, head_.config.kill_grace);
      }
      if (!job->ended_by) job->why_ended = decision.why;
      return life_.terminate(*job, gang::EndCause::TimeLimit, decision.why,
                             head_.config.kill_grace);
  }
}

void WaitingJobs::go(Job& job) {
  job.waits.clear();
  note_event(job, head_.runner.wall(), "no longer waits for other jobs or a time");
  if (job.info.is_array()) return arrays_.open(job);
  job.is_deferred = false;
  head_.runner.touch(job.info.id);
  gang::Actions actions;
  if (!job.is_held) {
    auto released = head_.runner.cluster().release(job.info.id, head_.runner.now());
    if (!released) {
      log_warning("Cannot release job", kv("job", job.info.id), kv("err", released.error()));
    } else {
      actions = std::move(*released);
    }
  }
  head_.runner.perform(std::move(actions));
}

}  // namespace score::head
