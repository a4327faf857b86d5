// What must hold between any two calls. Everything is computed anew from the jobs and compared with
// what the scheduler keeps. Used by the tests and the simulation.
// It is tested by properties_test.cpp and tests/sim.
#include "gang/head/cluster_impl.hpp"

#include <algorithm>
#include <numeric>

namespace score::gang {

using base::Errc;
using base::fail;

namespace {

struct Cells {
  std::map<std::tuple<std::size_t, NodeIndex, std::uint32_t>, JobId> taken;

  // False if another job has the core.
  bool take(std::size_t row, NodeIndex node, std::uint32_t core, JobId job) {
    return taken.emplace(std::tuple(row, node, core), job).second;
  }
};

}  // namespace

base::Result<void> Cluster::Impl::check_invariants(TimePoint now) const {
  if (auto r = check_matrix(); !r) return r;
  if (auto r = check_reservations(); !r) return r;
  if (auto r = check_jobs(now); !r) return r;
  if (auto r = check_waiting(); !r) return r;
  return check_columns();
}

// No two gangs on a core in a row; every placed job is where the matrix thinks.
base::Result<void> Cluster::Impl::check_matrix() const {
  Cells cells;
  std::vector<std::uint64_t> used(matrix_.row_count(), 0);
  std::vector<std::uint64_t> total(matrix_.row_count(), 0);
  for (const auto& [id, job] : jobs) {
    if (!job.placed || job.overlay()) continue;
    const auto row = matrix_.position(job.home);
    if (!row) return fail(Errc::WrongState, "job {} has no row", id);
    for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
      const NodeIndex node = job.cells.nodes[m];
      if (job.cells.cores[m].size() != cores_of_tasks(job.shape, job.tasks_on_node[m])) {
        return fail(Errc::WrongState, "job {} has a wrong number of cores", id);
      }
      const auto& there = matrix_.jobs_at(*row, node);
      if (std::count(there.begin(), there.end(), id) != 1) {
        return fail(Errc::WrongState, "job {} is not listed on its node", id);
      }
      for (const std::uint32_t core : job.cells.cores[m]) {
        if (core >= matrix_.cores(node) || !cells.take(*row, node, core, id)) {
          return fail(Errc::WrongState, "core {} of {} is used twice in row {}", core,
                      nodes[node].info.name, *row);
        }
        ++used[*row];
      }
    }
  }
  for (std::size_t row = 0; row < matrix_.row_count(); ++row) {
    for (NodeIndex n = 0; n < nodes.size(); ++n) total[row] += matrix_.cores(n);
    if (matrix_.free_cores(row) + used[row] != total[row]) {
      return fail(Errc::WrongState, "row {} counts its cores wrongly", row);
    }
    if (used[row] == 0 && freed_.empty() && !capacity_grew_) {
      return fail(Errc::WrongState, "row {} is empty", row);
    }
  }
  return {};
}

base::Result<void> Cluster::Impl::check_reservations() const {
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    const Node& node = nodes[index];
    base::Bytes sum{0};
    std::size_t placed = 0;
    std::optional<JobId> exclusive;
    std::uint32_t load = 0;
    for (const JobId id : node.jobs) {
      const Job* job = find_job(id);
      if (job == nullptr || !job->placed || !member_of(*job, index)) {
        return fail(Errc::WrongState, "{} lists job {}", node.info.name, id);
      }
      ++placed;
      sum += job->shape.memory;
      if (job->overlay()) continue;
      ++load;
      if (job->request.queue == base::Queue::Exclusive) exclusive = id;
    }
    if (sum != node.reserved || (node.seen && node.connected && sum > node.info.memory)) {
      const bool ending = std::any_of(node.jobs.begin(), node.jobs.end(), [this](JobId id) {
        return jobs.at(id).state == JobState::Completing;  // it came back smaller
      });
      if (sum != node.reserved || !ending) {
        return fail(Errc::WrongState, "memory of {} is overcommitted", node.info.name);
      }
    }
    if (load != matrix_.load(index)) {
      return fail(Errc::WrongState, "load of {} is counted wrongly", node.info.name);
    }
    if (exclusive && load > 1) {
      return fail(Errc::WrongState, "exclusive job {} shares {}", *exclusive, node.info.name);
    }
  }
  return {};
}

base::Result<void> Cluster::Impl::check_jobs(TimePoint now) const {
  std::size_t live = 0;
  for (const auto& [id, job] : jobs) {
    const bool final = base::is_final(job.state);
    live += final ? 0 : 1;
    const bool needs_place = job.state == JobState::Launching || job.is_managed();
    if ((needs_place && !job.placed) || ((final || job.state == JobState::Pending) && job.placed)) {
      return fail(Errc::WrongState, "job {} is {} and {}", id, to_string(job.state),
                  job.placed ? "placed" : "not placed");
    }
    const bool waits = waiting_.contains(job.wait);
    if (waits != (job.state == JobState::Pending && !job.request.held)) {
      return fail(Errc::WrongState, "job {} is {} and {} in line", id, to_string(job.state),
                  waits ? "" : "not");
    }
    const auto remaining = static_cast<std::size_t>(std::count_if(
        job.members.begin(), job.members.end(), [](Member m) { return m != Member::Gone; }));
    if (job.placed && (remaining != job.remaining || remaining == 0)) {
      return fail(Errc::WrongState, "job {} waits for {} of {} nodes", id, job.remaining,
                  remaining);
    }
    const std::size_t most = std::max(job.shape.nodes, job.shape.most_nodes);
    const std::size_t used = job.cells.nodes.size();
    if (job.placed && job.shape.nodes > 0 && (used < job.shape.nodes || used > most)) {
      return fail(Errc::WrongState, "job {} has {} nodes, not {} to {}", id, used, job.shape.nodes,
                  most);
    }
    if (job.ending.has_value() != (job.state == JobState::Completing)) {
      return fail(Errc::WrongState, "job {} is {} and does not know its end", id,
                  to_string(job.state));
    }
    if (scheduled(job, now) < Duration::zero()) {
      return fail(Errc::WrongState, "job {} was scheduled for a negative time", id);
    }
  }
  if (live != live_jobs_) return fail(Errc::WrongState, "{} jobs live, not {}", live, live_jobs_);
  return {};
}

// Nobody waits who need not.
base::Result<void> Cluster::Impl::check_waiting() const {
  if (capacity_grew_ || recovering_) return {};
  constexpr int kLooked = 16;  // it is expensive
  int looked = 0;
  for (const WaitKey& wait : waiting_) {
    if (++looked > kLooked) break;
    if (find_spot(jobs.at(wait.job))) {
      return fail(Errc::WrongState, "job {} waits although there is room", wait.job);
    }
  }
  return {};
}

// Nothing to publish: every node was told what the layout says.
base::Result<void> Cluster::Impl::check_columns() const {
  if (dirty || recovering_) return {};
  const std::vector<Column> columns = columns_of(lay_out(), last_serial_);
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    if (nodes[index].connected && nodes[index].column != columns[index]) {
      return fail(Errc::WrongState, "{} follows an old timetable", nodes[index].info.name);
    }
  }
  return {};
}

}  // namespace score::gang
