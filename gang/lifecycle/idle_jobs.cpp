// This file is tested by lifecycle_test.cpp and gang/head/idle_test.cpp.
#include "gang/lifecycle/idle_jobs.hpp"

#include "gang/job/deadlock.hpp"

namespace score::gang {

static_assert(ClusterConfig::kMinDeadlockAfter > base::limits::kSuspectAfter,
              "a node that is not suspect was heard within the time that a deadlock takes");

std::string deadlock_reason(const Job& job) {
  std::size_t tasks = 0;
  for (std::size_t m = 0; m < job.members->count(); ++m) {
    if (job.members->has_tasks(m)) tasks += job.request.allocation ? 1 : job.tasks_on_node[m];
  }
  return deadlock_text(job.idleness->task_waits(), tasks);
}

void IdleJobs::report(Job& job, std::size_t member, const base::Activity& activity, Step& step) {
  job.idleness.edit().report(member, activity);
  judge(job, step);
}

void IdleJobs::confirm(Job& job, std::uint32_t suspicion, bool is_deadlock, Step& step) {
  job.idleness.edit().confirm(suspicion, is_deadlock, step.now);
  judge(job, step);
}

bool IdleJobs::is_heard(const Job& job) const {
  for (std::size_t m = 0; m < job.members->count(); ++m) {
    const Node& node = tables_.nodes[job.cells.nodes[m]];
    if (job.members->has_tasks(m) && node.state != NodeState::Up) return false;
  }
  return true;
}

void IdleJobs::judge(Job& job, Step& step) {
  if (!job.is_active()) return;
  const IdleLimits limits{tables_.config.unsettled_idle, tables_.config.deadlock_after,
                          is_heard(job), tables_.config.confirms_deadlocks};
  const JobActivity before = job.idleness->activity();
  const std::uint32_t suspicion_before = job.idleness->suspicion();
  const JobActivity now = job.idleness.edit().judge(*job.members, step.now, limits);
  if (now == JobActivity::Deadlocked && before != now) ++tables_.counters.deadlocks;
  if (now != before) {
    tables_.jobs.mark_changed();
    step.job_changed(job.id);
  }
  if (job.idleness->suspicion() != suspicion_before) step.job_changed(job.id);
  if (const auto again = job.idleness->judge_again()) {
    tables_.deadlines.set(job.id, DeadlineKind::Idle, *again);
  }
  if (now == JobActivity::Deadlocked && job.request.kill_deadlock) {
    ending_.end(job, {JobState::Failed, deadlock_reason(job)}, step);
  }
}

}  // namespace score::gang
