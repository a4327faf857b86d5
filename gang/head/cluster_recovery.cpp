// A restarted head. Jobs that ran are put back on their old cores, and nothing is placed or
// published until their nodes have said hello or the grace is over: meanwhile all nodes go on
// following the old head's timetable, so their gangs stay in step. Jobs that were being launched
// are tried again; what is left of them on nodes has an older attempt and is killed when the nodes
// come.
// It is tested by cluster_test.cpp and tests/sim.
#include "base/exit_codes.hpp"
#include "gang/head/cluster_impl.hpp"

#include <algorithm>

namespace score::gang {

namespace limits = base::limits;

void Cluster::Impl::recover(const std::vector<RecoveredJob>& recovered, TimePoint now,
                            Actions& out) {
  std::vector<const RecoveredJob*> order;
  for (const RecoveredJob& job : recovered) {
    if (!jobs.contains(job.id) && !base::is_final(job.state)) order.push_back(&job);
  }
  std::sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->id < b->id; });
  for (const RecoveredJob* job : order) recover_one(*job, now, out);
  for (Node& node : nodes) {
    node.awaited = !node.jobs.empty() && !node.connected;
    if (node.awaited) detector_.expect(node.id, now, now + config.rejoin_grace);
    recovering_ |= node.awaited;
  }
  capacity_grew();
}

void Cluster::Impl::recover_one(const RecoveredJob& r, TimePoint now, Actions& out) {
  const auto shape = shape_of(r.request);
  add_job(r.id, r.user, r.request, shape.value_or(Shape{}), r.submitted);
  Job& job = jobs.at(r.id);
  job.keep_going = r.keep_going;
  job.attempts = r.attempt.value() % base::kAttemptsPerJob;
  job.restarts = r.restarts;
  if (r.started) job.started = std::min(*r.started, now);
  if (r.state == JobState::Pending || r.state == JobState::Launching) {
    job.started.reset();
    const auto possible = check(r.request);
    if (!possible) {
      return end(job, JobState::LaunchFailed, possible.error().context(), kExitError, now, out);
    }
    job.shape = *possible;
    if (job.attempts + 1 >= base::kAttemptsPerJob) {  // as by a head that ends in each launch
      return end(job, JobState::LaunchFailed,
                 fmt::format("it was launched {} times; no more can be told apart", job.attempts),
                 kExitError, now, out);
    }
    if (!r.request.held) waiting_.insert(job.wait);
    if (r.state == JobState::Launching) out.push_back(JobChanged{job.id});
    return;
  }
  if (!recover_placement(job, r)) {
    return end(job, JobState::NodeFailed, "its nodes are not in the configuration any more",
               kExitError, now, out);
  }
  job.members.assign(job.cells.nodes.size(), Member::Started);
  for (std::size_t m = 0; m < job.members.size(); ++m) job.to_begin.insert(m);
  job.parts.assign(job.members.size(), {});
  job.remaining = static_cast<std::uint32_t>(job.members.size());
  job.accrual.from = now;
  job.accrual.before = r.scheduled;
  if (!job.started) job.started = now;
  job.state = r.state;
  job.exit_code = r.exit_code;
  job.reasons = r.reasons;
  ++counters.jobs_started;
  note_state(job);
  if (r.state == JobState::Completing) {
    job.ending = r.ending.value_or(JobState::Failed);
    set_deadline(job, DeadlineKind::Kill, now + config.rejoin_grace + config.kill_deadline);
  } else if (r.request.wall_limit > Duration::zero()) {
    set_deadline(job, DeadlineKind::Wall, r.started.value_or(now) + r.request.wall_limit);
  }
}

// The old cores, in the first row where they are free. Nodes that were not seen yet are assumed to
// have as many cores as their jobs use; when they say hello the rest is known.
bool Cluster::Impl::recover_placement(Job& job, const RecoveredJob& r) {
  const std::size_t count = r.nodes.size();
  if (count == 0 || r.tasks_on_node.size() != count || r.cores.size() != count) return false;
  for (std::size_t m = 0; m < count; ++m) {
    const auto index = find_node(r.nodes[m]);
    const bool ascending = job.cells.nodes.empty() || (index && *index > job.cells.nodes.back());
    const bool sane = index && ascending && r.tasks_on_node[m] <= limits::kMaxTasksPerNode &&
                      std::is_sorted(r.cores[m].begin(), r.cores[m].end()) &&
                      (r.cores[m].empty() || r.cores[m].back() < limits::kMaxCoresPerNode);
    if (!sane) return false;
    job.cells.nodes.push_back(*index);
  }
  job.shape.tasks_per_core = tasks_per_core_of(r.tasks_on_node, r.cores, job.shape.cpus_per_task);
  job.cells.cores = r.cores;
  job.tasks_on_node = r.tasks_on_node;
  for (std::size_t m = 0; m < count; ++m) {
    const NodeIndex node = job.cells.nodes[m];
    if (r.cores[m].empty()) continue;
    if (!nodes[node].seen && matrix_.load(node) == 0) {
      matrix_.reserve(node, limits::kMaxCoresPerNode);
    }
    if (r.cores[m].back() < matrix_.cores(node)) continue;
    if (nodes[node].seen || !matrix_.set_cores(node, r.cores[m].back() + 1)) return false;
  }
  std::size_t row = 0;
  while (row < matrix_.row_count() && !matrix_.is_free(row, job.cells)) ++row;
  if (row == matrix_.row_count() && !job.overlay()) matrix_.open_row();
  place_cells(job, row);
  return true;
}

// The last awaited node came, or was given up.
void Cluster::Impl::end_recovery() {
  if (!recovering_) return;
  recovering_ = std::any_of(nodes.begin(), nodes.end(), [](const Node& n) { return n.awaited; });
  if (recovering_) return;
  capacity_grew();
  dirty = true;
}

}  // namespace score::gang
