// The candidates leave out the room that is kept for a different job: its cells, and on its nodes
// its memory.
//
// This file is tested by placer_test.cpp and gang/head/placement_test.cpp.
#include "gang/schedule/room.hpp"

#include "gang/schedule/backfill.hpp"
#include "gang/schedule/request_check.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace score::gang {

namespace limits = base::limits;
using base::Errc;
using base::fail;

void Room::add_node() {
  matrix_.add_node();
  units_.add_node();
  reserved_.emplace_back();
}

void Room::follow_hardware(NodeIndex node) {
  if (!nodes_[node].seen || matrix_.cores(node) == nodes_[node].info.cores) return;
  if (matrix_.set_cores(node, nodes_[node].info.cores)) set_grown();
}

bool Room::may_use(const Job& job, NodeIndex index) const {
  const Node& node = nodes_[index];
  if (node.state != NodeState::Up || node.drained || !node.zombies.empty()) return false;
  if (!is_allowed(job.allowed, index)) return false;
  if (!has_place(job, index)) return false;
  const bool is_free = calendar_.empty() && job.request.reservation.empty();
  if (!is_free && !calendar_.may_use(occupant(job), index)) return false;
  return job.overlay() || matrix_.cores(index) == node.info.cores;
}

Occupant Room::occupant(const Job& job) const {
  return {job.request.reservation, job.user, job.request.account,
          longest_of(job.request, config_.max_slots)};
}

// A new row is opened on nodes where no job of queue high would take all its slices.
std::vector<Candidate> Room::candidates(const Job& job, std::optional<std::size_t> row,
                                        const Kept* kept, NodeRange range) const {
  const bool is_row_kept = kept != nullptr && !job.overlay() &&
                           (kept->row == RowId{0} || (row && matrix_.row_id(*row) == kept->row));
  const NodeIndex last = std::min(range.last, static_cast<NodeIndex>(nodes_.size()));
  std::vector<Candidate> out;
  for (NodeIndex index = range.first; index < last; ++index) {
    const Reservations& here = reserved_[index];
    if (row && matrix_.free_cores(*row, index) < job.shape.cpus_per_task) continue;
    if (!may_use(job, index)) continue;
    const bool is_kept = kept != nullptr && kept->nodes[index];
    if (is_kept && is_row_kept) continue;
    if (job.shape.memory > base::Bytes{0}) {
      const bool is_given = assumed_ != nullptr || grants_.contains(job.id);
      const base::Bytes withheld = is_kept && !is_given ? kept->memory : base::Bytes{0};
      if (free_memory(job, index) - withheld < job.shape.memory) continue;
    }
    if (!has_scratch(job, index, kept, job.shape.scratch)) continue;
    if (!units_.has_room(job, index, row, is_kept ? kept->generic : Generic{})) continue;
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

bool Room::has_scratch(const Job& job, NodeIndex node, const Kept* kept, base::Bytes share) const {
  if (job.request.scratch == base::Bytes{0} || job.is_step()) return true;
  const bool is_kept = kept != nullptr && kept->nodes[node];
  const base::Bytes withheld = is_kept ? kept->scratch : base::Bytes{0};
  return free_scratch(node) - withheld >= share;
}

std::optional<Spot> Room::spot_in(const Job& job, std::optional<std::size_t> row, const Kept* kept,
                                  NodeRange range) const {
  auto choice =
      nodes_.topology().choose(job.shape, nodes_.leaves(), candidates(job, row, kept, range));
  if (!choice || (job.is_near && !is_within_switches(job, choice->nodes))) return std::nullopt;
  // On fewer nodes than it was checked for, each would hold more.
  const base::Bytes share = scratch_share(job.request, choice->nodes.size());
  if (share > job.shape.scratch && !std::ranges::all_of(choice->nodes, [&](NodeIndex node) {
        return has_scratch(job, node, kept, share);
      })) {
    return std::nullopt;
  }
  return Spot{row, std::move(*choice)};
}

bool Room::is_within_switches(const Job& job, const std::vector<NodeIndex>& nodes) const {
  return count_leaves(nodes_.leaves(), nodes) <= job.request.switches;
}

std::int64_t Room::free_nodes(std::optional<std::size_t> row) const {
  std::int64_t free = 0;
  for (NodeIndex index = 0; index < nodes_.size(); ++index) {
    const Node& node = nodes_[index];
    if (node.state != NodeState::Up || node.drained || !node.zombies.empty()) continue;
    const bool is_free =
        row ? matrix_.free_cores(*row, index) == matrix_.cores(index) : matrix_.load(index) == 0;
    free += is_free ? 1 : 0;
  }
  return free;
}

// ---- rows that are kept -----------------------------------------------------------------------

bool Room::holds_row(const Job& job, Hold kind) const {
  if (config_.long_limit == Duration::zero() || !job.has_row() || job.is_exclusive()) return false;
  const Duration limit = estimate_of(job);
  return limit > config_.long_limit && (kind == Hold::Any || limit < kNoEstimate);
}

// A matrix of one row cannot keep any.
std::size_t Room::kept_rows(Hold kind) const {
  constexpr std::uint32_t kEach = ClusterConfig::kSlotsPerKeptRow;
  const std::size_t kept = config_.max_slots < 2 ? 0 : (config_.max_slots + kEach - 1) / kEach;
  return kind == Hold::Long ? kept : kept / 2;
}

std::size_t Room::rows_kept_from(const Job& job) const {
  if (!holds_row(job, Hold::Any) || job.is_high()) return 0;
  return kept_rows(holds_row(job, Hold::Long) ? Hold::Long : Hold::Any);
}

std::uint32_t Room::holders(RowId row, Hold kind) const {
  const auto found = holders_.find(row);
  return found == holders_.end() ? 0 : found->second[static_cast<std::size_t>(kind)];
}

std::size_t Room::held_rows(Hold kind) const {
  std::size_t held = 0;
  const std::size_t rows = std::min<std::size_t>(matrix_.row_count(), config_.max_slots);
  for (std::size_t row = 0; row < rows; ++row) {
    held += holders(matrix_.row_id(row), kind) > 0 ? 1 : 0;
  }
  return held;
}

// A job that moves gives up its own row if it is the only one that holds it.
bool Room::may_hold(const Job& job, std::optional<std::size_t> row, Hold kind) const {
  if (row && holders(matrix_.row_id(*row), kind) > 0) return true;
  const auto home = job.placed ? matrix_.position(job.home) : std::nullopt;
  const bool gives_up = home && *home < config_.max_slots && holders(job.home, kind) == 1;
  return held_rows(kind) < most_held_rows(kind) + (gives_up ? 1 : 0);
}

// An urgent job may have a row beyond the others, which is for nothing else.
RowPlaces::Classes Room::row_classes(const Job& job) const {
  if (!job.has_row() || job.is_exclusive() || job.is_urgent()) return {};
  return {true, holds_row(job, Hold::Any), holds_row(job, Hold::Long)};
}

// Where a user may have all rows, only the number of rows limits them.
RowPlaces::Limits Room::row_limits() const {
  const auto limit = [](std::size_t rows) {
    const std::size_t most = base::shares::rows_of_user(rows);
    return most < rows ? most : SIZE_MAX;
  };
  return {limit(config_.max_slots), limit(most_held_rows(Hold::Any)),
          limit(most_held_rows(Hold::Long))};
}

bool Room::has_row_share(const Job& job, std::optional<std::size_t> row) const {
  return row_places_.may_take(job.user, row ? std::optional(matrix_.row_id(*row)) : std::nullopt,
                              job.placed ? std::optional(job.home) : std::nullopt, row_classes(job),
                              row_limits());
}

std::string Room::why_no_row(const Job& job) const {
  if (has_row_share(job, std::nullopt)) return {};
  const RowPlaces::Limits limits = row_limits();
  const std::string limit = base::format_duration(config_.long_limit);
  const std::array of_class = {std::string(),
                               fmt::format(" for jobs with no time limit or one over {}", limit),
                               fmt::format(" for jobs with a time limit over {}", limit)};
  const RowPlaces::Classes classes = row_classes(job);
  std::size_t full = 0;
  for (std::size_t i = 1; i < RowPlaces::kClasses; ++i) {
    RowPlaces::Classes one{};
    one.at(i) = classes.at(i);
    if (!row_places_.may_take(job.user, std::nullopt, std::nullopt, one, limits)) full = i;
  }
  return fmt::format("the limit per user is {} of {} slots{}", limits.at(full), config_.max_slots,
                     of_class.at(full));
}

bool Room::may_hold(const Job& job, std::optional<std::size_t> row) const {
  if (!has_row_share(job, row)) return false;
  if (!holds_row(job, Hold::Any) || job.is_high()) return true;
  return may_hold(job, row, Hold::Any) &&
         (!holds_row(job, Hold::Long) || may_hold(job, row, Hold::Long));
}

bool Room::opens_row(const Job& job) const {
  return std::ranges::any_of(kHolds, [&](Hold kind) {
    return holds_row(job, kind) && holders(job.home, kind) == 1 &&
           held_rows(kind) >= most_held_rows(kind);
  });
}

// ---- changes ----------------------------------------------------------------------------------

void Room::occupy(Job& job, std::size_t row) {
  matrix_.occupy(row, job.cells, job.id);
  job.home = matrix_.row_id(row);
  row_places_.take(job.user, job.home, row_classes(job));
  for (const Hold kind : kHolds) {
    if (holds_row(job, kind)) ++holders_[job.home][static_cast<std::size_t>(kind)];
  }
}

void Room::vacate(const Job& job, std::size_t row) {
  matrix_.vacate(row, job.cells, job.id);
  row_places_.give_back(job.user, job.home, row_classes(job));
  for (const Hold kind : kHolds) {
    if (holds_row(job, kind)) --holders_[job.home][static_cast<std::size_t>(kind)];
  }
  std::erase_if(holders_, [](const auto& of_row) { return of_row.second == Holders{}; });
}

void Room::put(Job& job, const Spot& spot) {
  job.cells.nodes = spot.choice.nodes;
  job.cells.cores.assign(job.cells.nodes.size(), {});
  job.tasks_on_node = spot.choice.tasks_on_node;
  if (job.is_step()) return put_inside(job);
  if (job.overlay()) return take_cells(job, 0);
  const std::size_t row = spot.row ? *spot.row : matrix_.open_row();
  for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
    job.cells.cores[m] = matrix_.lowest_free(row, job.cells.nodes[m],
                                             cores_of_tasks(job.shape, job.tasks_on_node[m]));
  }
  units_.choose(job, row);
  take_cells(job, row);
}

void Room::take_place(const Job& job, NodeIndex node) {
  NodePlaces& places = reserved_[node].places;
  const bool had_all = places.has_all(job.user);
  places.take(job.user, place_kind(job));
  if (!had_all && places.has_all(job.user)) ++full_on_[job.user];
}

void Room::give_back_place(const Job& job, NodeIndex node) {
  NodePlaces& places = reserved_[node].places;
  const bool had_all = places.has_all(job.user);
  places.give_back(job.user, place_kind(job));
  if (!had_all || places.has_all(job.user)) return;
  const auto full = full_on_.find(job.user);
  if (--full->second == 0) full_on_.erase(full);
}

// Takes the job's cells, which must be free, its memory and its units.
void Room::take_cells(Job& job, std::size_t row) {
  if (job.has_row()) occupy(job, row);
  job.placed = true;
  job.scratch = job.is_step() ? base::Bytes{0} : scratch_share(job.request, job.cells.nodes.size());
  units_.take(job);
  job.outcome.edit().expect(
      job.request.allocation ? std::vector<std::uint32_t>{0}
                             : base::nodes_of_ranks(job.tasks_on_node, job.request.distribution));
  for (const NodeIndex node : job.cells.nodes) {
    Reservations& here = reserved_[node];
    here.memory += job.shape.memory;
    here.scratch += job.scratch;
    here.jobs.insert(job.id);
    take_place(job, node);
    if (job.is_exclusive()) here.exclusive = job.id;
    if (job.is_high()) ++here.high;
  }
}

base::Bytes Room::free_memory(const Job& job, NodeIndex node) const {
  if (assumed_ != nullptr) return (*assumed_)[node];
  const Reservations& here = reserved_[node];
  const base::Bytes all = nodes_[node].info.memory;
  if (job.is_urgent()) return all + here.lent - here.memory;
  if (const auto granted = grants_.find(job.id); granted != grants_.end()) {
    for (const auto& [where, bytes] : granted->second) {
      if (where == node) return std::min(bytes, all + here.lent - here.memory);
    }
  }
  return all + here.open - here.memory - here.withheld;
}

void Room::grant(Grants grants, const std::vector<base::Bytes>& withheld) {
  bool has_changed = grants != grants_;
  for (NodeIndex node = 0; node < reserved_.size(); ++node) {
    const base::Bytes wanted = node < withheld.size() ? withheld[node] : base::Bytes{0};
    has_changed |= reserved_[node].withheld != wanted;
    reserved_[node].withheld = wanted;
  }
  grants_ = std::move(grants);
  if (has_changed) set_grown();
}

bool Room::may_take_back(const Job& job) const {
  for (std::size_t m = 0; m < job.parked->parts.size(); ++m) {
    const NodeIndex node = job.cells.nodes[m];
    const Reservations& here = reserved_[node];
    if (nodes_[node].info.memory + here.lent < here.memory + job.parked->parts[m].lent)
      return false;
  }
  return true;
}

void Room::lend(Job& job, std::size_t member, base::Bytes stays, bool is_open) {
  Reservations& here = reserved_[job.cells.nodes[member]];
  Parked::Part& part = job.parked.edit().parts[member];
  const base::Bytes more = job.shape.memory - stays - part.lent;
  if (part.lent > base::Bytes{0} || more == base::Bytes{0}) return;
  part.lent = more;
  part.is_open = is_open;
  here.lent += more;
  if (is_open) here.open += more;
  set_grown();
}

void Room::take_back(Job& job) {
  for (std::size_t m = 0; m < job.parked->parts.size(); ++m) {
    Reservations& here = reserved_[job.cells.nodes[m]];
    Parked::Part& part = job.parked.edit().parts[m];
    here.lent -= part.lent;
    if (part.is_open) here.open -= part.lent;
    part.lent = base::Bytes{0};
    part.is_open = false;
  }
}

void Room::unplace(Job& job) {
  take_back(job);
  if (job.parked->is_away()) job.parked.edit().residence = Residence::InMemory;
  const auto row = matrix_.position(job.home);
  if (row) vacate(job, *row);
  job.placed = false;
  units_.give_back(job);
  for (const NodeIndex node : job.cells.nodes) {
    Reservations& here = reserved_[node];
    here.memory -= job.shape.memory;
    here.scratch -= job.scratch;
    here.jobs.erase(job.id);
    give_back_place(job, node);
    if (here.exclusive == job.id) here.exclusive.reset();
    if (job.is_high()) --here.high;
    if (row) freed_.emplace_back(job.home, node);
    follow_hardware(node);
  }
  set_grown();
  jobs_.mark_changed();
}

// Counts what depends on the limits and the queue of a placed job; UINT32_MAX subtracts it.
void Room::count(const Job& job, std::uint32_t change) {
  for (const Hold kind : kHolds) {
    if (holds_row(job, kind)) holders_[job.home][static_cast<std::size_t>(kind)] += change;
  }
  std::erase_if(holders_, [](const auto& of_row) { return of_row.second == Holders{}; });
  if (!job.is_high()) return;
  for (const NodeIndex node : job.cells.nodes) reserved_[node].high += change;
}

void Room::change(Job& job, const base::ResourceRequest& request) {
  count(job, UINT32_MAX);
  row_places_.give_back(job.user, job.home, row_classes(job));
  job.request = request;
  row_places_.take(job.user, job.home, row_classes(job));
  count(job, 1);
  set_grown();
  jobs_.mark_changed();
}

void Room::move(JobId id, std::size_t to) {
  Job& job = jobs_.at(id);
  for (const NodeIndex node : job.cells.nodes) freed_.emplace_back(job.home, node);
  vacate(job, *matrix_.position(job.home));
  occupy(job, to);
}

std::optional<std::pair<RowId, NodeIndex>> Room::take_freed() {
  if (freed_.empty()) return std::nullopt;
  const auto freed = freed_.back();
  freed_.pop_back();
  return freed;
}

void Room::move_all(const std::vector<std::pair<JobId, std::size_t>>& moves) {
  for (const auto& [id, to] : moves) {
    const Job& job = jobs_.at(id);
    vacate(job, *matrix_.position(job.home));
  }
  for (const auto& [id, to] : moves) occupy(jobs_.at(id), to);
}

// ---- a restarted head -------------------------------------------------------------------------

// A node that was not seen yet is assumed to have as many cores as its jobs use. The rest is known
// after its hello.
bool Room::make_room(const Job& job) {
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

bool Room::restore(Job& job) {
  job.shape.tasks_per_core =
      tasks_per_core_of(job.tasks_on_node, job.cells.cores, job.shape.cpus_per_task);
  if (job.is_step()) job.shape.memory = base::Bytes{0};
  if (!make_room(job)) return false;
  units_.restore(job);
  std::size_t row = 0;
  while (row < matrix_.row_count() && !matrix_.is_free(row, job.cells)) ++row;
  if (row == matrix_.row_count() && job.has_row()) matrix_.open_row();
  take_cells(job, row);
  return true;
}

// ---- invariants -------------------------------------------------------------------------------

base::Result<void> Room::check() const {
  if (auto r = check_matrix(); !r) return r;
  if (auto r = units_.check(jobs_); !r) return r;
  return check_reservations();
}

// No two gangs may use a core in one row, and every placed job must be where the matrix has it.
base::Result<void> Room::check_matrix() const {
  std::set<std::tuple<std::size_t, NodeIndex, std::uint32_t>> taken;
  std::vector<std::uint64_t> used(matrix_.row_count(), 0);
  std::map<RowId, Holders> holders;
  RowPlaces row_places;
  for (const auto& [id, job] : jobs_.all()) {
    if (!job.placed || !job.has_row()) continue;
    const auto row = matrix_.position(job.home);
    if (!row) return fail(Errc::WrongState, "job {} has no row", id);
    row_places.take(job.user, job.home, row_classes(job));
    for (const Hold kind : kHolds) {
      if (holds_row(job, kind)) ++holders[job.home][static_cast<std::size_t>(kind)];
    }
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
  if (holders != holders_ || row_places != row_places_) {
    return fail(Errc::WrongState, "holders of rows are counted wrongly");
  }
  std::uint64_t total = 0;
  for (NodeIndex node = 0; node < nodes_.size(); ++node) total += matrix_.cores(node);
  for (std::size_t row = 0; row < matrix_.row_count(); ++row) {
    if (matrix_.free_cores(row) + used[row] != total) {
      return fail(Errc::WrongState, "row {} counts its cores wrongly", row);
    }
    if (used[row] == 0 && freed_.empty() && !has_grown_) {
      return fail(Errc::WrongState, "row {} is empty", row);
    }
  }
  return {};
}

base::Result<void> Room::check_reservations() const {
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
      if (const auto m = job->member_on(index); *m < job->parked->parts.size()) {
        const Parked::Part& part = job->parked->parts[*m];
        sum.lent += part.lent;
        if (part.is_open) sum.open += part.lent;
      }
      sum.scratch += job->scratch;
      sum.high += job->is_high() ? 1 : 0;
      sum.places.take(job->user, place_kind(*job));
      load += job->has_row() ? 1 : 0;
      if (job->is_exclusive()) sum.exclusive = id;
      is_any_ending |= job->state == JobState::Completing;
    }
    const bool is_known = node.seen && node.connected && !is_any_ending;
    if (sum.scratch != reserved_[index].scratch || (is_known && sum.scratch > node.info.scratch)) {
      return fail(Errc::WrongState, "scratch of {} is overcommitted", name);
    }
    const bool is_too_much =
        node.seen && node.connected && sum.memory > node.info.memory + sum.lent;
    // The memory is overcommitted on a node with less than before, until its jobs have ended.
    if (sum.lent != reserved_[index].lent || sum.open != reserved_[index].open) {
      return fail(Errc::WrongState, "lent memory of {} is counted wrongly", name);
    }
    if (sum.memory != reserved_[index].memory || (is_too_much && !is_any_ending)) {
      return fail(Errc::WrongState, "memory of {} is overcommitted", name);
    }
    if (load != matrix_.load(index) || sum.high != reserved_[index].high) {
      return fail(Errc::WrongState, "load of {} is counted wrongly", name);
    }
    if (sum.places != reserved_[index].places) {
      return fail(Errc::WrongState, "places of {} are counted wrongly", name);
    }
    if (sum.exclusive && load > 1) {
      return fail(Errc::WrongState, "exclusive job {} shares {}", *sum.exclusive, name);
    }
  }
  return {};
}

}  // namespace score::gang
