// Waiting jobs are tried in order (queue high first, then priority, then age), each in the existing
// rows from the first on; only if none has room is a row opened. Later, smaller jobs may pass. So
// that they do not keep the first in line waiting for ever, that one is given a promise: nodes, and
// a row (all rows, if it is exclusive), in which nothing behind it in line is placed any more, and
// into which compaction moves nothing. What runs there ends sooner or later, and nothing new comes.
//
// Cost: a pass over the line happens only when room grew, and skips every job that needs no less
// than one that found no place. A new job is tried alone.
#include "gang/schedule/placer.hpp"

#include "gang/schedule/request_check.hpp"

#include <algorithm>
#include <tuple>

namespace score::gang {

namespace limits = base::limits;
using base::Errc;
using base::fail;

namespace {

// Only such jobs may be compared by their shapes alone.
bool is_plain(const Job& job) {
  return !job.is_exclusive() && !job.overlay() && job.allowed.empty();
}

}  // namespace

void Placer::add_node() {
  matrix_.add_node();
  reserved_.emplace_back();
  if (promise_) promise_->nodes.resize(nodes_.size());
  for (auto& [id, job] : jobs_.all()) job.allowed = allowed_nodes(nodes_, job.request);
}

void Placer::follow_hardware(NodeIndex node) {
  if (!nodes_[node].seen || matrix_.cores(node) == nodes_[node].info.cores) return;
  if (matrix_.set_cores(node, nodes_[node].info.cores)) capacity_grew();
}

// ---- room -------------------------------------------------------------------------------------

bool Placer::may_use(const Job& job, NodeIndex index) const {
  const Node& node = nodes_[index];
  if (node.state != NodeState::Up || node.drained || !node.zombies.empty()) return false;
  if (!is_allowed(job.allowed, index)) return false;
  if (reserved_[index].jobs.size() >= limits::kMaxJobsPerNode) return false;
  return job.overlay() || matrix_.cores(index) == node.info.cores;
}

bool Placer::is_behind_promise(const Job& job) const {
  return promise_ && promise_->wait < job.wait;
}

std::optional<JobId> Placer::behind(const Job& job) const {
  if (!is_behind_promise(job)) return std::nullopt;
  return promise_->job;
}

base::Bytes Placer::free_memory(const Job& job, NodeIndex node) const {
  base::Bytes free = nodes_[node].info.memory - reserved_[node].memory;
  if (is_behind_promise(job) && promise_->nodes[node]) free -= promise_->memory;
  return free;
}

// Nodes that could take tasks of the job in this row; nullopt: in a row of its own, or without
// cores (overlay). A new row is opened where no job of queue high would take all its slices.
std::vector<Candidate> Placer::candidates(const Job& job, std::optional<std::size_t> row) const {
  const bool is_behind = is_behind_promise(job) && !job.overlay();
  const bool is_row_promised =
      is_behind && (promise_->row == RowId{0} || (row && matrix_.row_id(*row) == promise_->row));
  std::vector<Candidate> out;
  for (NodeIndex index = 0; index < nodes_.size(); ++index) {
    const Reservations& here = reserved_[index];
    if (row && matrix_.free_cores(*row, index) < job.shape.cpus_per_task) continue;
    if (!may_use(job, index) || (is_row_promised && promise_->nodes[index])) continue;
    if (job.shape.memory > base::Bytes{0} && free_memory(job, index) < job.shape.memory) continue;
    std::uint32_t room = limits::kMaxTasksPerNode;
    if (!job.overlay()) {
      if (here.exclusive || (job.is_exclusive() && matrix_.load(index) > 0)) continue;
      const std::uint32_t free = row ? matrix_.free_cores(*row, index) : matrix_.cores(index);
      room = tasks_on_cores(job.shape, free);
    } else if (job.shape.most_on_node > 0) {
      room = std::min(room, job.shape.most_on_node);
    }
    if (room == 0) continue;
    const std::uint32_t high = job.is_high() || job.overlay() ? 0 : here.high;
    const auto load = static_cast<std::uint32_t>(here.jobs.size());
    out.push_back({index, room, load + high * limits::kMaxJobsPerNode});
  }
  return out;
}

// A job that takes more nodes where there is room takes those of the row that has most: it opens no
// row, and costs no other job a slice, for more than its least.
std::optional<Spot> Placer::find_spot(const Job& job) const {
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
  if (!job.overlay() && rows >= config_.max_slots) return std::nullopt;
  std::vector<Candidate> room = candidates(job, std::nullopt);
  auto choice = choose(job.shape, room);
  if (!choice) return std::nullopt;
  return Spot{std::nullopt, std::move(*choice)};
}

// ---- placing ----------------------------------------------------------------------------------

void Placer::put(Job& job, const Spot& spot) {
  job.cells.nodes = spot.choice.nodes;
  job.cells.cores.assign(job.cells.nodes.size(), {});
  job.tasks_on_node = spot.choice.tasks_on_node;
  if (job.overlay()) return take_cells(job, 0);
  const std::size_t row = spot.row ? *spot.row : matrix_.open_row();
  for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
    job.cells.cores[m] = matrix_.lowest_free(row, job.cells.nodes[m],
                                             cores_of_tasks(job.shape, job.tasks_on_node[m]));
  }
  take_cells(job, row);
}

// Takes the job's cells, which are free, and memory.
void Placer::take_cells(Job& job, std::size_t row) {
  if (!job.overlay()) {
    matrix_.occupy(row, job.cells, job.id);
    job.home = matrix_.row_id(row);
  }
  job.placed = true;
  job.outcome.expect(base::nodes_of_ranks(job.tasks_on_node, job.request.distribution));
  for (const NodeIndex node : job.cells.nodes) {
    Reservations& here = reserved_[node];
    here.memory += job.shape.memory;
    here.jobs.insert(job.id);
    if (job.is_exclusive()) here.exclusive = job.id;
    if (job.is_high()) ++here.high;
  }
}

void Placer::unplace(Job& job) {
  const auto row = matrix_.position(job.home);
  if (row) matrix_.vacate(*row, job.cells, job.id);
  job.placed = false;
  for (const NodeIndex node : job.cells.nodes) {
    Reservations& here = reserved_[node];
    here.memory -= job.shape.memory;
    here.jobs.erase(job.id);
    if (here.exclusive == job.id) here.exclusive.reset();
    if (job.is_high()) --here.high;
    if (row) freed_.emplace_back(job.home, node);
    follow_hardware(node);
  }
  capacity_grew();
  jobs_.mark_changed();
}

bool Placer::try_place(Job& job) {
  const auto spot = find_spot(job);
  if (!spot) return false;
  put(job, *spot);
  waiting_.erase(job.wait);
  if (promise_ && promise_->job == job.id) promise_.reset();
  return true;
}

// A job that has just begun to wait: room has not grown, so the others need not be tried.
bool Placer::try_new(Job& job) {
  waiting_.insert(job.wait);
  if (nodes_.is_awaiting() || capacity_grew_) return false;
  if (try_place(job)) return true;
  if (comes_before_promise(job)) promise_to(job);
  return false;
}

void Placer::enqueue(Job& job) {
  waiting_.insert(job.wait);
  capacity_grew();
}

void Placer::withdraw(const Job& job) {
  waiting_.erase(job.wait);
  if (!promise_ || promise_->job != job.id) return;
  promise_.reset();
  capacity_grew();
}

void Placer::set_priority(Job& job, std::int32_t priority) {
  const bool waits = waiting_.erase(job.wait) > 0;
  job.request.priority = priority;
  job.wait.minus_priority = -std::int64_t{priority};
  if (!waits) return;
  waiting_.insert(job.wait);
  promise_.reset();  // another job may be the first in line
  capacity_grew();
}

void Placer::leave_node(NodeIndex node) {
  if (promise_ && promise_->nodes[node]) capacity_grew();
}

std::vector<JobId> Placer::place_waiting() {
  std::vector<JobId> placed;
  if (nodes_.is_awaiting() || !capacity_grew_) return placed;
  compact();
  capacity_grew_ = false;
  if (promise_ && !promise_holds()) promise_.reset();
  std::vector<Shape> failed;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    Job& job = jobs_.at((it++)->job);
    const bool is_hopeless =
        is_plain(job) && std::any_of(failed.begin(), failed.end(), [&](const Shape& shape) {
          return needs_no_less(job.shape, shape);
        });
    if (is_hopeless) continue;
    if (try_place(job)) {
      placed.push_back(job.id);
      continue;
    }
    if (comes_before_promise(job)) promise_to(job);
    if (is_plain(job)) failed.push_back(job.shape);
  }
  return placed;
}

// ---- a restarted head -------------------------------------------------------------------------

// Nodes that were not seen yet are taken to have as many cores as their jobs use; when they say
// hello the rest is known.
bool Placer::make_room(const Job& job) {
  for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
    const NodeIndex node = job.cells.nodes[m];
    const std::vector<std::uint32_t>& cores = job.cells.cores[m];
    if (cores.empty()) continue;
    if (!nodes_[node].seen && matrix_.load(node) == 0) {
      matrix_.reserve(node, limits::kMaxCoresPerNode);
    }
    if (cores.back() < matrix_.cores(node)) continue;
    if (nodes_[node].seen || !matrix_.set_cores(node, cores.back() + 1)) return false;
  }
  return true;
}

bool Placer::restore(Job& job) {
  job.shape.tasks_per_core =
      tasks_per_core_of(job.tasks_on_node, job.cells.cores, job.shape.cpus_per_task);
  if (!make_room(job)) return false;
  std::size_t row = 0;
  while (row < matrix_.row_count() && !matrix_.is_free(row, job.cells)) ++row;
  if (row == matrix_.row_count() && !job.overlay()) matrix_.open_row();
  take_cells(job, row);
  return true;
}

// ---- the promise ------------------------------------------------------------------------------

bool Placer::comes_before_promise(const Job& job) const {
  return !promise_ || job.wait < promise_->wait;
}

// Promises the places that will be free soonest, as far as is known: few jobs to wait for. If
// the nodes that are up could not hold the job at all, nothing is promised.
void Placer::promise_to(const Job& job) {
  if (job.overlay()) return;
  Promise promise{job.id, job.wait, RowId{0}, std::vector<bool>(nodes_.size()), job.shape.memory};
  std::optional<std::size_t> row;
  for (std::size_t r = 0; !job.is_exclusive() && r < matrix_.row_count(); ++r) {
    if (!row || matrix_.free_cores(r) > matrix_.free_cores(*row)) row = r;
  }
  if (row) promise.row = matrix_.row_id(*row);
  std::vector<Candidate> room;
  for (NodeIndex index = 0; index < nodes_.size(); ++index) {
    const base::Bytes memory = nodes_[index].info.memory;
    if (!may_use(job, index) || memory < job.shape.memory) continue;
    const std::uint32_t tasks = tasks_on_cores(job.shape, matrix_.cores(index));
    if (tasks == 0) continue;
    const auto in_row = row ? matrix_.jobs_at(*row, index).size() : matrix_.load(index);
    const bool is_short = memory - reserved_[index].memory < job.shape.memory;
    room.push_back({index, tasks, static_cast<std::uint32_t>(in_row) + (is_short ? 1 : 0)});
  }
  std::vector<Candidate> again = room;
  auto choice = choose(at_least(job.shape), room);
  if (!choice) choice = choose(job.shape, again);  // that many nodes do not hold it
  if (!choice) return;
  for (const NodeIndex index : choice->nodes) promise.nodes[index] = true;
  if (promise_) capacity_grew();  // for the jobs that were behind the one before
  promise_ = std::move(promise);
}

bool Placer::promise_holds() const {
  const Job& job = jobs_.at(promise_->job);
  if (promise_->row != RowId{0} && !matrix_.position(promise_->row)) return false;
  for (NodeIndex index = 0; index < nodes_.size(); ++index) {
    if (promise_->nodes[index] && !may_use(job, index)) return false;
  }
  return true;
}

// ---- compaction -------------------------------------------------------------------------------

bool Placer::is_promised_cell(std::size_t position, const Footprint& cells) const {
  if (!promise_) return false;
  if (promise_->row != RowId{0} && promise_->row != matrix_.row_id(position)) return false;
  return std::any_of(cells.nodes.begin(), cells.nodes.end(),
                     [this](NodeIndex node) { return promise_->nodes[node]; });
}

// Into the lowest row below its own where its very cores are free.
bool Placer::move_down(Job& job) {
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
void Placer::compact() {
  bool has_moved = false;
  while (!freed_.empty()) {
    const auto [row, node] = freed_.back();
    freed_.pop_back();
    const auto position = matrix_.position(row);
    if (!position) continue;
    for (std::size_t above = *position + 1; above < matrix_.row_count(); ++above) {
      const std::vector<JobId> there = matrix_.jobs_at(above, node);
      for (const JobId id : there) has_moved |= move_down(jobs_.at(id));
    }
  }
  const std::size_t rows = matrix_.row_count();
  matrix_.drop_empty_rows();
  if (has_moved || rows != matrix_.row_count()) jobs_.mark_changed();
}

// ---- invariants -------------------------------------------------------------------------------
// Everything is computed anew from the jobs and compared with what is kept.

base::Result<void> Placer::check() const {
  if (auto r = check_matrix(); !r) return r;
  if (auto r = check_reservations(); !r) return r;
  return check_line();
}

// No two gangs on a core in a row; every placed job is where the matrix has it.
base::Result<void> Placer::check_matrix() const {
  std::set<std::tuple<std::size_t, NodeIndex, std::uint32_t>> taken;
  std::vector<std::uint64_t> used(matrix_.row_count(), 0);
  for (const auto& [id, job] : jobs_.all()) {
    if (!job.placed || job.overlay()) continue;
    const auto row = matrix_.position(job.home);
    if (!row) return fail(Errc::WrongState, "job {} has no row", id);
    for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
      const NodeIndex node = job.cells.nodes[m];
      const auto& there = matrix_.jobs_at(*row, node);
      if (job.cells.cores[m].size() != cores_of_tasks(job.shape, job.tasks_on_node[m]) ||
          std::count(there.begin(), there.end(), id) != 1) {
        return fail(Errc::WrongState, "job {} has other cores on {}", id, nodes_.name(node));
      }
      for (const std::uint32_t core : job.cells.cores[m]) {
        if (core >= matrix_.cores(node) || !taken.emplace(*row, node, core).second) {
          return fail(Errc::WrongState, "core {} of {} is used twice in row {}", core,
                      nodes_.name(node), *row);
        }
        ++used[*row];
      }
    }
  }
  std::uint64_t total = 0;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) total += matrix_.cores(node);
  for (std::size_t row = 0; row < matrix_.row_count(); ++row) {
    if (matrix_.free_cores(row) + used[row] != total) {
      return fail(Errc::WrongState, "row {} counts its cores wrongly", row);
    }
    if (used[row] == 0 && freed_.empty() && !capacity_grew_) {
      return fail(Errc::WrongState, "row {} is empty", row);
    }
  }
  return {};
}

base::Result<void> Placer::check_reservations() const {
  for (NodeIndex index = 0; index < nodes_.size(); ++index) {
    const Node& node = nodes_[index];
    const std::string& name = node.info.name;
    Reservations sum;
    std::uint32_t load = 0;
    bool is_any_ending = false;
    for (const JobId id : reserved_[index].jobs) {
      const Job* job = jobs_.find(id);
      if (job == nullptr || !job->member_on(index)) {
        return fail(Errc::WrongState, "{} lists job {}", name, id);
      }
      sum.memory += job->shape.memory;
      sum.high += job->is_high() ? 1 : 0;
      load += job->overlay() ? 0 : 1;
      if (job->is_exclusive()) sum.exclusive = id;
      is_any_ending |= job->state == JobState::Completing;
    }
    const bool is_too_much = node.seen && node.connected && sum.memory > node.info.memory;
    // A node that came back smaller is overcommitted until its jobs have ended.
    if (sum.memory != reserved_[index].memory || (is_too_much && !is_any_ending)) {
      return fail(Errc::WrongState, "memory of {} is overcommitted", name);
    }
    if (load != matrix_.load(index) || sum.high != reserved_[index].high) {
      return fail(Errc::WrongState, "load of {} is counted wrongly", name);
    }
    if (sum.exclusive && load > 1) {
      return fail(Errc::WrongState, "exclusive job {} shares {}", *sum.exclusive, name);
    }
  }
  return {};
}

// In line are the pending jobs that are not held, and none for which there is room.
base::Result<void> Placer::check_line() const {
  for (const auto& [id, job] : jobs_.all()) {
    if (is_in_line(job) != (job.state == JobState::Pending && !job.request.held)) {
      return fail(Errc::WrongState, "job {} is {} and {} in line", id, to_string(job.state),
                  is_in_line(job) ? "" : "not");
    }
    const std::size_t most = std::max(job.shape.nodes, job.shape.most_nodes);
    const std::size_t used = job.cells.nodes.size();
    if (job.placed && job.shape.nodes > 0 && (used < job.shape.nodes || used > most)) {
      return fail(Errc::WrongState, "job {} has {} nodes, not {} to {}", id, used, job.shape.nodes,
                  most);
    }
  }
  if (capacity_grew_ || nodes_.is_awaiting()) return {};
  constexpr int kTried = 16;  // it is expensive
  int tried = 0;
  for (const WaitKey& wait : waiting_) {
    if (++tried > kTried) break;
    if (find_spot(jobs_.at(wait.job))) {
      return fail(Errc::WrongState, "job {} waits although there is room", wait.job);
    }
  }
  return {};
}

}  // namespace score::gang
