// Recovery restores jobs that ran to their old cores. Nothing is placed or published until their
// nodes have said hello or the grace is over. Until then all nodes follow the old head's timetable,
// so their gangs stay in step. Jobs that were being launched are launched again; their remains on
// nodes have an older attempt and are killed when the nodes connect.
// This file is tested by placement_test.cpp and requeue_test.cpp.
#include "gang/head/recovery.hpp"

#include "base/text/plain.hpp"
#include "gang/schedule/request_check.hpp"

#include <algorithm>
#include <tuple>

namespace score::gang {

namespace limits = base::limits;

void Recovery::recover(const std::vector<RecoveredJob>& jobs, Step& step) {
  std::vector<const RecoveredJob*> order;
  for (const RecoveredJob& job : jobs) {
    if (!tables_.jobs.contains(job.id) && !base::is_final(job.state)) order.push_back(&job);
  }
  // Steps come after their jobs. Urgent jobs come after others, which then get back the first rows:
  // the rows beyond max_slots are for urgent jobs only.
  const auto key = [](const RecoveredJob& job) {
    return std::tuple(job.request.inside != JobId{0}, job.request.queue == base::Queue::Urgent,
                      job.id);
  };
  std::sort(order.begin(), order.end(), [&](auto* a, auto* b) { return key(*a) < key(*b); });
  for (const RecoveredJob* job : order) recover_one(*job, step);
  for (const RecoveredJob* job : order) {
    Job* known = tables_.jobs.find(job->id);
    if (known != nullptr && known->state == JobState::Completing) ending_.end_steps(*known, step);
  }
  for (NodeIndex node = 0; node < tables_.nodes.size(); ++node) {
    if (placer_.on_node(node).jobs.empty() || tables_.nodes[node].connected) continue;
    tables_.nodes.await(node, step.now, step.now + tables_.config.rejoin_grace);
  }
  placer_.capacity_grew();
}

void Recovery::recover_one(const RecoveredJob& r, Step& step) {
  const auto shape = shape_of(r.request);
  Job& job = tables_.jobs.add(r.id, r.user, r.request, shape.value_or(Shape{}));
  job.allowed = allowed_nodes(tables_.nodes, r.request);
  job.submitted = r.submitted;
  job.keep_going = r.keep_going;
  job.attempts = r.attempt.value() % base::kAttemptsPerJob;
  job.restarts = r.restarts;
  job.asked_restarts = r.asked_restarts;
  if (job.is_step() && !recover_inside(job, step)) return;
  if (r.state == JobState::Pending || r.state == JobState::Launching) {
    recover_waiting(job, r, step);
  } else if (fill_cells(job, r) && placer_.restore(job)) {
    recover_placed(job, r, step);
  } else {
    ending_.end(job, {JobState::NodeFailed, "its nodes are no longer in the configuration"}, step);
  }
}

// Attaches a step to its job. Steps come after their jobs, so a missing job has ended. Returns
// false, and ends the step, in that case.
bool Recovery::recover_inside(Job& job, Step& step) {
  Job* allocation = tables_.jobs.find(job.request.inside);
  if (allocation == nullptr || !allocation->placed) {
    ending_.end(job,
                {JobState::Cancelled, fmt::format("job {} has ended", job.request.inside),
                 base::kExitInterrupted},
                step);
    return false;
  }
  job.shape.memory = job.shape.scratch = base::Bytes{0};
  job.shape.tasks_per_core = allocation->shape.tasks_per_core;
  allocation->steps.edit().insert(job.id);
  return true;
}

void Recovery::recover_waiting(Job& job, const RecoveredJob& r, Step& step) {
  const auto shape = job.is_step()
                         ? base::Result<Shape>(job.shape)
                         : check_waiting(tables_.nodes, r.request, tables_.config.overcommit);
  if (!shape) return ending_.end(job, {JobState::LaunchFailed, shape.error().context()}, step);
  job.shape = *shape;
  if (job.attempts + 1 >= base::kAttemptsPerJob) {  // after crashes in each launch
    return ending_.end(
        job,
        {JobState::LaunchFailed, fmt::format("it was launched {}, which is the limit",
                                             base::counted(job.attempts, "time"))},
        step);
  }
  if (!r.request.held) placer_.enqueue(job);
  if (r.state == JobState::Launching) step.job_changed(job.id);
}

void Recovery::recover_placed(Job& job, const RecoveredJob& r, Step& step) {
  const std::size_t count = job.cells.nodes.size();
  job.started = std::min(r.started.value_or(step.now), step.now);
  job.members.edit().assume_started(count);
  if (is_bare(job.request)) job.members.edit().keep_first();
  job.idleness.edit().begin(count);
  job.time.edit().restore(step.now, r.scheduled);
  job.steps_usage = r.steps_usage;
  job.is_young = job.has_row() && r.scheduled < tables_.config.young_time;
  ++tables_.counters.jobs_started;
  const bool is_ending = r.state == JobState::Completing;
  if (is_ending) {
    job.outcome.edit().restore(r.ending.value_or(JobState::Failed), r.exit_code, r.reasons);
    const bool is_of_machine =
        r.ending == JobState::NodeFailed || r.ending == JobState::LaunchFailed;
    job.fault = is_of_machine ? Fault::Machine : Fault::Job;
    const Duration timeout =
        tables_.config.rejoin_grace + tables_.config.kill_deadline + tables_.config.epilog_limit;
    tables_.deadlines.set(job.id, DeadlineKind::Kill, step.now + timeout);
  } else {
    job.outcome.edit().restore(std::nullopt, r.exit_code, {});
    if (r.request.wall_limit > Duration::zero()) {
      tables_.deadlines.set(job.id, DeadlineKind::Wall, *job.started + r.request.wall_limit);
    }
  }
  if (r.is_requeued) {
    job.is_requeued = job.is_stopping = true;
    job.lost = r.lost;
  }
  if (r.state == JobState::Pending) watch_switches(job, tables_, step);
  tables_.jobs.restore_state(job, r.state);
  if (r.state == JobState::Suspended) placer_.suspended(job);
}

// Restores the old place. Returns false if it does not exist on the nodes as configured.
bool Recovery::fill_cells(Job& job, const RecoveredJob& r) const {
  const std::size_t count = r.nodes.size();
  if (count == 0 || r.tasks_on_node.size() != count || r.cores.size() != count) return false;
  Footprint cells;
  for (std::size_t m = 0; m < count; ++m) {
    const auto node = tables_.nodes.find(r.nodes[m]);
    const bool is_ascending = cells.nodes.empty() || (node && *node > cells.nodes.back());
    const bool is_sane = node && is_ascending && r.tasks_on_node[m] <= limits::kMaxTasksPerNode &&
                         std::is_sorted(r.cores[m].begin(), r.cores[m].end()) &&
                         (r.cores[m].empty() || r.cores[m].back() < limits::kMaxCoresPerNode);
    if (!is_sane) return false;
    cells.nodes.push_back(*node);
  }
  if (!r.units.empty() && r.units.size() != count) return false;
  if (r.units.empty() && !r.request.generic.empty()) return false;
  cells.cores = r.cores;
  job.cells = std::move(cells);
  job.units = r.units;
  job.tasks_on_node = r.tasks_on_node;
  return true;
}

}  // namespace score::gang
