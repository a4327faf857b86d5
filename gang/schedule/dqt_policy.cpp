// The matrix stores the queues of the tree. The jobs on the path from the root to a leaf are those
// that use the leaf's node: they take turns, and each needs its own row. So the path load M(v), the
// jobs of all ancestors' queues and of the longest path below, is the number of jobs of the node of
// v that has most. Rows are assigned from the root down. The queue of the root has the first rows,
// each partition's queue has the rows after those of its parent, and the halves of a partition use
// the same rows. The round of the root has as many slices as the longest path has jobs. A lighter
// partition repeats its own round in the additional slices of its heavier sibling. That is
// unification (layout.cpp), which gives these slices to its jobs by share.
//
// The differences from the paper are: a job that needs less than its partition leaves the other
// nodes to jobs below; several jobs with few cores share one row of a node; jobs keep their nodes,
// but a new job is put where the load is least.
//
// This file is tested by dqt_policy_test.cpp.
#include "gang/schedule/dqt_policy.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

namespace score::gang {

namespace {

struct NodePartition {
  NodeRange range;
  std::uint32_t path_load = 0;
  std::uint64_t jobs = 0;  // on all its nodes
};

// Returns the partitions of `size` nodes, a power of two, the least loaded first.
std::vector<NodePartition> partitions_of(const Matrix& matrix, std::uint32_t size) {
  const auto count = static_cast<NodeIndex>(matrix.node_count());
  std::vector<NodePartition> out;
  for (NodeIndex first = 0; first < count; first += size) {
    NodePartition p{{first, std::min(count, first + size)}};
    for (NodeIndex node = p.range.first; node < p.range.last; ++node) {
      p.path_load = std::max(p.path_load, matrix.load(node));
      p.jobs += matrix.load(node);
    }
    out.push_back(p);
  }
  std::stable_sort(out.begin(), out.end(), [](const NodePartition& a, const NodePartition& b) {
    return std::tie(a.path_load, a.jobs) < std::tie(b.path_load, b.jobs);
  });
  return out;
}

// Returns the number of nodes that a job needs at least; 0 if that is unknown before it is tried.
std::uint32_t least_nodes(const Job& job, const Matrix& matrix) {
  if (job.shape.nodes > 0) return job.shape.nodes;
  std::uint32_t most = 1;
  for (NodeIndex node = 0; node < matrix.node_count(); ++node) {
    most = std::max(most, tasks_on_cores(job.shape, matrix.cores(node)));
  }
  return (job.shape.tasks + most - 1) / most;
}

// Returns the size of the smallest partition that holds the job's nodes, as a power of two.
int level_of(const Footprint& cells) {
  return std::bit_width(cells.nodes.front() ^ cells.nodes.back());
}

}  // namespace

// If no partition of the least size holds the job (nodes are down, or small), the next larger ones
// are tried, the whole cluster last.
std::optional<Spot> DqtPolicy::find_spot(const Job& job) const {
  if (job.overlay() || job.shape.most_nodes > 0) return MatrixPolicy::find_spot(job);
  const Matrix& matrix = room().matrix();
  const auto count = static_cast<std::uint32_t>(matrix.node_count());
  const Kept* kept = kept_from(job);
  const std::size_t rows = std::min(matrix.row_count(), room().rows_for(job));
  const bool may_open = matrix.row_count() < room().rows_for(job) && may_hold(job, std::nullopt);
  for (std::uint32_t size = std::bit_ceil(std::max(1U, least_nodes(job, matrix)));; size *= 2) {
    for (const NodePartition& p : partitions_of(matrix, size)) {
      for (std::size_t row = 0; row < rows; ++row) {
        if (!may_hold(job, row)) continue;
        if (auto spot = room().spot_in(job, row, kept, p.range)) return spot;
      }
      if (!may_open) continue;
      if (auto spot = room().spot_in(job, std::nullopt, kept, p.range)) return spot;
    }
    if (size >= count) return std::nullopt;
  }
}

// Each job is moved to the first row that no earlier job of its path has taken. The order is from
// the root down, and by age in each queue. The urgent jobs come after all others, so that the rows
// beyond max_slots are for them only. All jobs stay where they are if the result takes more rows
// than there are (jobs with few cores are packed like boxes). They also stay if it would move a job
// that is not urgent up into such a row, or would let jobs hold a row that is kept for short ones.
bool DqtPolicy::repack() {
  while (room().take_freed()) {
  }
  const Matrix& matrix = room().matrix();
  std::vector<const Job*> jobs;
  for (NodeIndex node = 0; node < matrix.node_count(); ++node) {
    for (const JobId id : room().on_node(node).jobs) {
      const Job& job = room().jobs().at(id);
      if (job.has_row() && job.cells.nodes.front() == node) jobs.push_back(&job);
    }
  }
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job* a, const Job* b) {
    return std::tuple(a->is_urgent(), -level_of(a->cells), a->wait.number) <
           std::tuple(b->is_urgent(), -level_of(b->cells), b->wait.number);
  });
  const std::size_t rows = matrix.row_count();
  std::vector<CoreMap> taken;
  std::vector<std::pair<JobId, std::size_t>> moves;
  std::map<Hold, std::set<std::size_t>> held;
  bool is_possible = true;
  for (const Job* job : jobs) {
    std::size_t row = 0;
    while (row < taken.size() && !matrix.is_free(taken[row], job->cells)) ++row;
    if (row == taken.size()) taken.push_back(matrix.empty_map());
    matrix.take(taken[row], job->cells);
    for (const Hold kind : kHolds) {
      if (row < room().config().max_slots && room().holds_row(*job, kind)) held[kind].insert(row);
    }
    const auto home = matrix.position(job->home);
    if (row != *home) moves.emplace_back(job->id, row);
    is_possible = is_possible && (row <= *home || row < room().rows_for(*job));
  }
  is_possible = is_possible && taken.size() <= rows && !moves.empty();
  for (const auto& [kind, by] : held) {
    const std::size_t most = std::max(room().held_rows(kind), room().most_held_rows(kind));
    is_possible = is_possible && by.size() <= most;
  }
  if (is_possible) room().move_all(moves);
  room().drop_empty_rows();
  return is_possible || rows != matrix.row_count();
}

}  // namespace score::gang
