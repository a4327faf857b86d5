// This file is tested by lifecycle_test.cpp and gang/head/idle_test.cpp.
#include "gang/lifecycle/idle_jobs.hpp"

namespace score::gang {

void IdleJobs::report(Job& job, std::size_t member, const base::Activity& activity, Step& step) {
  job.idleness.report(member, activity);
  judge(job, step);
}

void IdleJobs::judge(Job& job, Step& step) {
  if (!job.is_active()) return;
  const IdleLimits limits{tables_.config.unsettled_idle, tables_.config.deadlock_after};
  const JobActivity before = job.idleness.activity();
  const JobActivity now = job.idleness.judge(job.members, step.now, limits);
  if (now != before) {
    tables_.jobs.mark_changed();
    step.job_changed(job.id);
  }
  if (const auto again = job.idleness.judge_again()) {
    tables_.deadlines.set(job.id, DeadlineKind::Idle, *again);
  }
  if (now == JobActivity::Deadlocked && job.request.kill_deadlock) {
    ending_.end(job, {JobState::Failed, kDeadlockReason}, step);
  }
}

}  // namespace score::gang
