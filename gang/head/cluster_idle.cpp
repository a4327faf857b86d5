// Idle jobs. Each node says of its share of an attempt whether it is idle, and how many messages
// its contexts have sent and received; it says so when that changes, having looked twice in a row.
//
// A job is idle when all its shares are. If as many messages were received as sent, nothing is in
// flight that could wake one of them, and it is idle at once: a node's two looks, the same ones for
// all nodes of a gang, are the two waves of Mattern's four counters (1987). If not, somebody sleeps
// beside a message that it will not take soon; then it is idle after unsettled_idle.
//
// An idle job keeps its place, its memory and its row; it is only left out of the timetable, as
// long as a busy job wants its cores (lay_out()). The first node that says busy brings it back.
//
// A job of which every task waits for a message, for ever, is deadlocked: nobody can send one. That
// is said after deadlock_after, in which every node has looked again several times.
// It is tested by idle_test.cpp.
#include "base/exit_codes.hpp"
#include "gang/head/cluster_impl.hpp"

namespace score::gang {

namespace {}  // namespace

void Cluster::Impl::forget_activity(Job& job) {
  job.quiet_since.reset();
  job.waits_since.reset();
  job.activity = JobActivity::Busy;
  job.background = false;
}

void Cluster::Impl::set_activity(Job& job, JobActivity activity, Actions& out) {
  if (job.activity == activity) return;
  job.activity = activity;
  dirty = true;
  out.push_back(JobChanged{job.id});
}

void Cluster::Impl::activity_changed(Job& job, std::size_t member, const base::Activity& activity,
                                     TimePoint now, Actions& out) {
  job.parts[member] = activity;
  if (job.state == JobState::Running && !job.overlay()) judge_activity(job, now, out);
}

// A share that has ended can neither act nor send; what it had sent is not known, so nothing is
// settled any more.
Cluster::Impl::Whole Cluster::Impl::whole_activity(const Job& job) {
  if (!job.to_begin.empty()) return {};  // who has not begun waits for nothing of its own
  Whole whole{true, true, true};
  std::uint64_t in_flight = 0;  // sent and not received, modulo 2^64
  for (std::size_t m = 0; m < job.members.size(); ++m) {
    if (job.members[m] == Member::Gone) {
      whole.settled = false;
      continue;
    }
    const base::Activity& part = job.parts[m];
    if (!part.idle) return {};
    whole.waits &= part.waits;
    in_flight += part.sent - part.received;
  }
  whole.settled &= in_flight == 0;
  return whole;
}

void Cluster::Impl::judge_activity(Job& job, TimePoint now, Actions& out) {
  if (job.state != JobState::Running) return;
  const Whole whole = whole_activity(job);
  const auto lasts = [now](std::optional<TimePoint>& since, bool holds) {
    since = holds ? since.value_or(now) : std::optional<TimePoint>{};
    return holds ? now - *since : Duration{0};
  };
  const Duration quiet = lasts(job.quiet_since, whole.idle);
  const Duration waits = lasts(job.waits_since, whole.waits);
  if (!whole.idle) return set_activity(job, JobActivity::Busy, out);
  if (job.activity == JobActivity::Busy && !whole.settled && quiet < config.unsettled_idle) {
    return set_deadline(job, DeadlineKind::Quiet, *job.quiet_since + config.unsettled_idle);
  }
  if (whole.waits && waits >= config.deadlock_after) return deadlocked(job, now, out);
  set_activity(job, JobActivity::Idle, out);
  if (whole.waits) {
    set_deadline(job, DeadlineKind::Quiet, *job.waits_since + config.deadlock_after);
  }
}

void Cluster::Impl::deadlocked(Job& job, TimePoint now, Actions& out) {
  set_activity(job, JobActivity::Deadlocked, out);
  if (!job.request.kill_deadlock) return;
  end(job, JobState::Failed, kDeadlockReason, kExitError, now, out);
}

void Cluster::Impl::note_background(const Layout& layout, Actions& out) {
  for (const JobId id : active_) {
    Job& job = jobs.at(id);
    const bool is_background = layout.background.contains(id);
    if (job.background == is_background) continue;
    job.background = is_background;
    ++(is_background ? counters.idle_left : counters.idle_returned);
    out.push_back(JobChanged{id});
  }
}

}  // namespace score::gang
