// Who is placed next, and where.
//
// Waiting jobs are tried in order (High first, then priority, then age), each in the existing rows
// from the first on; only if none has room is a row opened. Later, smaller jobs may pass. So that
// they do not keep the first in line waiting for ever, that one is given a promise: nodes, and a
// row (all rows, if it is exclusive), in which nothing behind it in line is placed any more, and
// into which compaction moves nothing. What runs there ends sooner or later, and nothing new comes.
//
// Cost: a pass over the queue happens only when room grew, and skips every job that needs no less
// than one that found no place. A new job is tried alone.
// It is tested by placement_test.cpp.
#include "base/assert.hpp"
#include "gang/head/cluster_impl.hpp"

#include <algorithm>

namespace score::gang {

namespace limits = base::limits;

namespace {

bool is_exclusive(const Job& job) {
  return job.request.queue == base::Queue::Exclusive && !job.overlay();
}

// Only such jobs may be compared by their shapes alone.
bool is_plain(const Job& job) {
  return !is_exclusive(job) && !job.overlay() && job.allowed.empty();
}

}  // namespace

// A name that is not known (any more: a restarted head may have another configuration) is no node.
std::vector<bool> Cluster::Impl::allowed_nodes(const base::ResourceRequest& request) const {
  if (request.only_nodes.empty() && request.except_nodes.empty()) return {};
  std::vector<bool> allowed(nodes.size(), request.only_nodes.empty());
  const auto set = [&](const std::vector<std::string>& list, bool may) {
    for (const std::string& name : list) {
      if (const auto found = names.find(name); found != names.end()) allowed[found->second] = may;
    }
  };
  set(request.only_nodes, true);
  set(request.except_nodes, false);
  return allowed;
}

// ---- room -------------------------------------------------------------------------------------

bool Cluster::Impl::may_use(const Job& job, NodeIndex index) const {
  const Node& node = nodes[index];
  if (node.state != NodeState::Up || node.drained || !node.zombies.empty()) return false;
  if (!job.allowed.empty() && (index >= job.allowed.size() || !job.allowed[index])) return false;
  if (node.jobs.size() >= limits::kMaxJobsPerNode) return false;
  return job.overlay() || matrix_.cores(index) == node.info.cores;
}

bool Cluster::Impl::is_behind_promise(const Job& job) const {
  return promise_ && promise_->wait < job.wait;
}

base::Bytes Cluster::Impl::free_memory(const Job& job, NodeIndex node) const {
  base::Bytes free = nodes[node].info.memory - nodes[node].reserved;
  if (is_behind_promise(job) && promise_->nodes[node]) free -= promise_->memory;
  return free;
}

// Nodes that could take tasks of the job in this row; nullopt: in a row of its own, or without
// cores (overlay).
std::vector<Candidate> Cluster::Impl::candidates(const Job& job,
                                                 std::optional<std::size_t> row) const {
  const bool behind = is_behind_promise(job) && !job.overlay();
  const bool row_promised =
      behind && (promise_->row == RowId{0} || (row && matrix_.row_id(*row) == promise_->row));
  std::vector<Candidate> out;
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    const Node& node = nodes[index];
    if (row && matrix_.free_cores(*row, index) < job.shape.cpus_per_task) continue;
    if (!may_use(job, index) || (row_promised && promise_->nodes[index])) continue;
    if (job.shape.memory > base::Bytes{0} && free_memory(job, index) < job.shape.memory) continue;
    std::uint32_t room = limits::kMaxTasksPerNode;
    if (!job.overlay()) {
      if (node.exclusive || (is_exclusive(job) && matrix_.load(index) > 0)) continue;
      const std::uint32_t free = row ? matrix_.free_cores(*row, index) : matrix_.cores(index);
      room = tasks_on_cores(job.shape, free);
    } else if (job.shape.most_on_node > 0) {
      room = std::min(room, job.shape.most_on_node);
    }
    if (room > 0) out.push_back({index, room, static_cast<std::uint32_t>(node.jobs.size())});
  }
  return out;
}

// A job that takes more nodes where there is room takes those of the row that has most: it opens
// no row, and costs nobody a slice, for more than the least.
std::optional<Spot> Cluster::Impl::find_spot(const Job& job) const {
  const std::uint64_t cores = cores_of_tasks(job.shape, job.shape.tasks);
  const std::size_t rows = job.overlay() ? 0 : matrix_.row_count();
  const std::size_t enough = std::max(job.shape.nodes, job.shape.most_nodes);
  std::optional<Spot> best;
  for (std::size_t row = 0; row < rows; ++row) {
    if (matrix_.free_cores(row) < cores) continue;
    std::vector<Candidate> room = candidates(job, row);
    auto choice = choose(job.shape, room);
    if (!choice || (best && choice->nodes.size() <= best->choice.nodes.size())) continue;
    best = Spot{row, std::move(*choice)};
    if (best->choice.nodes.size() >= enough) break;
  }
  if (best) return best;
  if (!job.overlay() && rows >= config.max_slots) return std::nullopt;
  std::vector<Candidate> room = candidates(job, std::nullopt);
  auto choice = choose(job.shape, room);
  if (!choice) return std::nullopt;
  return Spot{std::nullopt, std::move(*choice)};
}

// ---- placing ----------------------------------------------------------------------------------

void Cluster::Impl::put(Job& job, const Spot& spot) {
  job.cells.nodes = spot.choice.nodes;
  job.cells.cores.assign(job.cells.nodes.size(), {});
  job.tasks_on_node = spot.choice.tasks_on_node;
  if (job.overlay()) return place_cells(job, 0);
  const std::size_t row = spot.row ? *spot.row : matrix_.open_row();
  for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
    job.cells.cores[m] = matrix_.lowest_free(row, job.cells.nodes[m],
                                             cores_of_tasks(job.shape, job.tasks_on_node[m]));
  }
  place_cells(job, row);
}

// Takes the job's cells, which are free, and memory.
void Cluster::Impl::place_cells(Job& job, std::size_t row) {
  if (!job.overlay()) {
    matrix_.occupy(row, job.cells, job.id);
    job.home = matrix_.row_id(row);
  }
  job.placed = true;
  std::uint32_t rank = 0;
  job.node_of_rank = base::nodes_of_ranks(job.tasks_on_node, job.request.distribution);
  for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
    Node& node = nodes[job.cells.nodes[m]];
    node.reserved += job.shape.memory;
    node.jobs.insert(job.id);
    if (is_exclusive(job)) node.exclusive = job.id;
    rank += job.tasks_on_node[m];
  }
  job.exits.assign(rank, {});
  job.exit_known.assign(rank, false);
}

void Cluster::Impl::unplace(Job& job) {
  const auto row = matrix_.position(job.home);
  if (row) matrix_.vacate(*row, job.cells, job.id);
  job.placed = false;
  for (const NodeIndex index : job.cells.nodes) {
    Node& node = nodes[index];
    node.reserved -= job.shape.memory;
    node.jobs.erase(job.id);
    if (node.exclusive == job.id) node.exclusive.reset();
    if (row) freed_.emplace_back(job.home, index);
    apply_hardware(index);
  }
  capacity_grew();
  dirty = true;
}

bool Cluster::Impl::try_place(Job& job, TimePoint now, Actions& out) {
  const auto spot = find_spot(job);
  if (!spot) return false;
  put(job, *spot);
  waiting_.erase(job.wait);
  if (promise_ && promise_->job == job.id) promise_.reset();
  launch(job, now, out);
  return true;
}

// A job that has just begun to wait: room has not grown, so the others need not be tried.
void Cluster::Impl::try_new(Job& job, TimePoint now, Actions& out) {
  waiting_.insert(job.wait);
  if (recovering_ || capacity_grew_) return;  // settle() will
  if (!try_place(job, now, out) && comes_before_promise(job)) promise_to(job);
}

void Cluster::Impl::place_waiting(TimePoint now, Actions& out) {
  if (recovering_ || !capacity_grew_) return;
  compact();
  capacity_grew_ = false;
  if (promise_ && !promise_holds()) promise_.reset();
  std::vector<Shape> failed;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Job& job = jobs.at((it++)->job);
    const bool hopeless = is_plain(job) && std::any_of(failed.begin(), failed.end(), [&](auto& f) {
                            return needs_no_less(job.shape, f);
                          });
    if (hopeless || try_place(job, now, out)) continue;
    if (comes_before_promise(job)) promise_to(job);
    if (is_plain(job)) failed.push_back(job.shape);
  }
}

// ---- the promise ------------------------------------------------------------------------------

bool Cluster::Impl::comes_before_promise(const Job& job) const {
  return !promise_ || job.wait < promise_->wait;
}

// Promises the places that will be free soonest, as far as one can tell: few jobs to wait for. If
// the nodes that are up could not hold the job at all, nothing is promised.
void Cluster::Impl::promise_to(const Job& job) {
  if (job.overlay()) return;
  Promise promise{job.id, job.wait, RowId{0}, std::vector<bool>(nodes.size()), job.shape.memory};
  std::optional<std::size_t> row;
  for (std::size_t r = 0; !is_exclusive(job) && r < matrix_.row_count(); ++r) {
    if (!row || matrix_.free_cores(r) > matrix_.free_cores(*row)) row = r;
  }
  if (row) promise.row = matrix_.row_id(*row);
  std::vector<Candidate> room;
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    const Node& node = nodes[index];
    if (!may_use(job, index) || node.info.memory < job.shape.memory) continue;
    const std::uint32_t tasks = tasks_on_cores(job.shape, matrix_.cores(index));
    if (tasks == 0) continue;
    const auto in_row = row ? matrix_.jobs_at(*row, index).size() : matrix_.load(index);
    const bool short_of_memory = node.info.memory - node.reserved < job.shape.memory;
    room.push_back({index, tasks, static_cast<std::uint32_t>(in_row) + (short_of_memory ? 1 : 0)});
  }
  std::vector<Candidate> again = room;
  auto choice = choose(at_least(job.shape), room);
  if (!choice) choice = choose(job.shape, again);  // that many nodes do not hold it
  if (!choice) return;
  for (const NodeIndex index : choice->nodes) promise.nodes[index] = true;
  if (promise_) capacity_grew();  // for those who were behind the one before
  promise_ = std::move(promise);
}

bool Cluster::Impl::promise_holds() const {
  const Job& job = jobs.at(promise_->job);
  if (promise_->row != RowId{0} && !matrix_.position(promise_->row)) return false;
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    if (promise_->nodes[index] && !may_use(job, index)) return false;
  }
  return true;
}

// ---- compaction -------------------------------------------------------------------------------

bool Cluster::Impl::is_promised_cell(std::size_t position, const Footprint& cells) const {
  if (!promise_) return false;
  if (promise_->row != RowId{0} && promise_->row != matrix_.row_id(position)) return false;
  return std::any_of(cells.nodes.begin(), cells.nodes.end(),
                     [this](NodeIndex node) { return promise_->nodes[node]; });
}

// Into the lowest row below its own where its very cores are free.
bool Cluster::Impl::move_down(Job& job) {
  const auto from = matrix_.position(job.home);
  if (!from) return false;
  for (std::size_t to = 0; to < *from; ++to) {
    if (!matrix_.is_free(to, job.cells) || is_promised_cell(to, job.cells)) continue;
    matrix_.vacate(*from, job.cells, job.id);
    matrix_.occupy(to, job.cells, job.id);
    for (const NodeIndex node : job.cells.nodes) freed_.emplace_back(job.home, node);
    job.home = matrix_.row_id(to);
    return true;
  }
  return false;
}

// Only jobs on freed cells' nodes, in rows above, can gain; what they leave may let others follow.
void Cluster::Impl::compact() {
  bool moved = false;
  while (!freed_.empty()) {
    const auto [row, node] = freed_.back();
    freed_.pop_back();
    const auto position = matrix_.position(row);
    if (!position) continue;
    for (std::size_t above = *position + 1; above < matrix_.row_count(); ++above) {
      const std::vector<JobId> there = matrix_.jobs_at(above, node);
      for (const JobId id : there) moved |= move_down(jobs.at(id));
    }
  }
  const std::size_t rows = matrix_.row_count();
  matrix_.drop_empty_rows();
  if (moved || rows != matrix_.row_count()) dirty = true;
}

}  // namespace score::gang
