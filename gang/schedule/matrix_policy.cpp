// Waiting jobs are tried in order (queue high first, then priority, then age), each in the existing
// rows from the first on. A row is opened only if none has room. Later, smaller jobs may pass. So
// that they do not block the first in the queue for ever, it gets a promise: nodes, and a row (all
// rows, if it is exclusive), in which no job behind it is placed any more and into which no job
// moves. The jobs there end sooner or later, and no new ones come.
//
// Long jobs (ClusterConfig::long_limit) gain nothing from sharing their time with each other: two
// of them that take turns both end when the second would have. They share all the same while each
// finds room, as users of a lightly loaded cluster expect. From the first one that has to wait
// until none of them is left, they take the lowest of their rows one after the other, by EASY, and
// this row has a much greater weight, so that a job on one node does not take half of the time of a
// job on all. Those up to long_early do not wait for it: they start at once in a higher row, get a
// slice in each cycle, and move down when their cores are free there and no job ahead of them is
// delayed. A longer job that did so would be bound for hours to nodes that others use, while better
// ones become free.
//
// Short jobs always find a row: long ones, and jobs without a limit, may hold only so many (see
// Hold). No promise is made for a row that the job may not hold, because short jobs would wait for
// it.
//
// An urgent job does not wait for a row: when all max_slots are in use, it gets one beyond them.
// The other jobs must not use that row, or it would stay when the urgent job has ended. They are
// tried only in the first max_slots rows and move only downwards.
//
// This file is tested by placer_test.cpp and gang/head/placement_test.cpp.
#include "gang/schedule/matrix_policy.hpp"

#include <algorithm>

namespace score::gang {

void MatrixPolicy::add_node() {
  if (promise_) promise_->kept.nodes.resize(room_.nodes().size());
}

void MatrixPolicy::begin_pass(TimePoint now) {
  too_large_.clear();
  if (room_.config().long_limit > Duration::zero()) {
    backfill_.begin(now, free_in_front(),
                    [&](JobId id) { return is_in_front(room_.jobs().at(id)); });
  }
  if (promise_ && !promise_holds()) promise_.reset();
}

const Kept* MatrixPolicy::kept_from(const Job& job) const {
  return promise_ && promise_->wait < job.wait ? &promise_->kept : nullptr;
}

std::optional<JobId> MatrixPolicy::behind(const Job& job) const {
  if (kept_from(job) == nullptr) return std::nullopt;
  return promise_->job;
}

Policy::Withheld MatrixPolicy::withheld(const Job& job, NodeIndex node) const {
  const Kept* kept = kept_from(job);
  if (kept == nullptr || !kept->nodes[node]) return {};
  return {kept->memory, kept->scratch};
}

// ---- long jobs --------------------------------------------------------------------------------

bool MatrixPolicy::is_long(const Job& job) const {
  const Duration limit = room_.config().long_limit;
  return rules_.long_rows && limit > Duration::zero() && !job.overlay() && !job.is_high() &&
         !job.is_exclusive() && job.allowed.empty() && job.request.generic.empty() &&
         estimate_of(job) > limit && estimate_of(job) < kNoEstimate;
}

bool MatrixPolicy::may_open_row(const Job& job) const {
  if (job.overlay()) return true;
  return may_hold(job, std::nullopt) && room_.matrix().row_count() < room_.rows_for(job);
}

bool MatrixPolicy::may_take_row(std::size_t position, const Job& job) const {
  return is_long_row(position) == is_long(job) && may_hold(job, position);
}

std::vector<std::size_t> MatrixPolicy::long_rows() const {
  std::vector<std::size_t> out;
  for (std::size_t row = 0; row < room_.matrix().row_count(); ++row) {
    if (is_long_row(row)) out.push_back(row);
  }
  return out;
}

bool MatrixPolicy::is_front_row(std::size_t position) const {
  if (!is_long_row(position)) return false;
  std::size_t below = 0;
  for (std::size_t row = 0; row < position; ++row) below += is_long_row(row) ? 1 : 0;
  return below < room_.config().long_slots;
}

std::uint32_t MatrixPolicy::boost_of(const Job& job) const {
  const bool is_boosted = is_long(job) && long_has_waited_ && is_in_front(job);
  return is_boosted ? room_.config().long_weight : 1;
}

Policy::Turn MatrixPolicy::turn_of(const Job& job) const {
  if (!is_long(job) || !job.placed || !long_has_waited_) return {};
  Turn turn{true, std::nullopt};
  if (is_in_front(job)) return turn;
  for (const std::size_t row : long_rows()) {
    for (const NodeIndex node : job.cells.nodes) {
      for (const JobId other : room_.matrix().jobs_at(row, node)) {
        if (other != job.id && long_jobs_.contains(other)) return {true, other};
      }
    }
  }
  return turn;
}

std::string MatrixPolicy::why_waits(const Job& job) const {
  if (!is_long(job)) return {};
  const ClusterConfig& config = room_.config();
  return fmt::format(
      "long jobs (time limit over {}) run one after the other: their {} full, or kept for a job "
      "ahead",
      base::format_duration(std::max(config.long_limit, config.long_early)),
      config.long_slots == 1 ? "row is" : "rows are");
}

// ---- places -----------------------------------------------------------------------------------

// A job with a range of nodes takes the nodes of the row that has most. For more than its minimum
// it opens no row and costs no other job a slice.
std::optional<Spot> MatrixPolicy::find_spot(const Job& job) const {
  const Matrix& matrix = room_.matrix();
  const std::uint64_t cores = cores_of_tasks(job.shape, job.shape.tasks);
  const std::size_t rows = job.overlay() ? 0 : std::min(matrix.row_count(), room_.rows_for(job));
  const std::size_t enough = std::max(job.shape.nodes, job.shape.most_nodes);
  const Kept* kept = kept_from(job);
  if (is_long(job)) return find_long_spot(job, kept);
  std::optional<Spot> best;
  for (std::size_t row = 0; row < rows; ++row) {
    if (matrix.free_cores(row) < cores || !may_take_row(row, job)) continue;
    auto spot = room_.spot_in(job, row, kept);
    if (!spot || (best && spot->choice.nodes.size() <= best->choice.nodes.size())) continue;
    best = std::move(spot);
    if (best->choice.nodes.size() >= enough) break;
  }
  if (best || !may_open_row(job)) return best;
  return room_.spot_in(job, std::nullopt, kept);
}

// A long job takes free nodes of the lowest rows if it delays no job ahead of it there, by the time
// limits. Otherwise it may start in a different row.
std::optional<Spot> MatrixPolicy::find_long_spot(const Job& job, const Kept* kept) const {
  const Matrix& matrix = room_.matrix();
  const std::vector<std::size_t> rows = long_rows();
  const std::size_t front = std::min<std::size_t>(rows.size(), room_.config().long_slots);
  const bool may_start = backfill_.may_start(job);
  const auto fits = [&](std::optional<std::size_t> row) -> std::optional<Spot> {
    const bool may_use =
        row ? *row < room_.rows_for(job) && may_hold(job, *row) : may_open_row(job);
    if (!may_use) return std::nullopt;
    if (row && matrix.free_cores(*row) < cores_of_tasks(job.shape, job.shape.tasks))
      return std::nullopt;
    return room_.spot_in(job, row, kept);
  };
  for (std::size_t i = 0; may_start && i < front; ++i) {
    if (auto spot = fits(rows[i])) return spot;
  }
  if (may_start && front < room_.config().long_slots) {
    if (auto spot = fits(std::nullopt)) return spot;
  }
  if (!may_start_beside(job) || is_too_large(job)) return std::nullopt;
  if (!room_.spot_in(job, std::nullopt, kept)) return std::nullopt;
  for (std::size_t i = front; i < rows.size(); ++i) {
    if (auto spot = fits(rows[i])) return spot;
  }
  return fits(std::nullopt);
}

// Many long jobs may wait, and there is no room for one that needs no less than one that waits.
bool MatrixPolicy::is_too_large(const Job& job) const {
  return std::ranges::any_of(too_large_,
                             [&](const Shape& other) { return needs_no_less(job.shape, other); });
}

void MatrixPolicy::note_too_large(const Job& job) {
  if (!room_.calendar().empty() || room_.is_short_of_places(job.user) || is_too_large(job)) return;
  std::erase_if(too_large_, [&](const Shape& other) { return needs_no_less(other, job.shape); });
  too_large_.push_back(job.shape);
}

std::int64_t MatrixPolicy::free_in_front() const {
  const std::vector<std::size_t> rows = long_rows();
  const std::size_t front = std::min<std::size_t>(rows.size(), room_.config().long_slots);
  std::int64_t free = 0;
  for (std::size_t i = 0; i < front; ++i) free += room_.free_nodes(rows[i]);
  const auto unopened = static_cast<std::int64_t>(room_.config().long_slots - front);
  return free + unopened * static_cast<std::int64_t>(room_.nodes().size());
}

bool MatrixPolicy::stays(const Job& job) {
  if (is_long(job)) {
    if (may_start_beside(job)) note_too_large(job);
    long_has_waited_ = true;
    backfill_.stays(job);
    return true;
  }
  if (!promise_ || job.wait < promise_->wait) promise_to(job);
  return true;
}

void MatrixPolicy::placed(const Job& job) {
  if (is_long(job)) {
    long_rows_.insert(job.home);
    long_jobs_.insert(job.id);
    if (is_in_front(job)) backfill_.placed(job);
  }
  if (promise_ && promise_->job == job.id) promise_.reset();
  if (room_.opens_row(job)) room_.set_grown();
}

void MatrixPolicy::unplaced(const Job& job) {
  backfill_.unplaced(job);
  if (long_jobs_.erase(job.id) > 0 && long_jobs_.empty()) long_has_waited_ = false;
}

void MatrixPolicy::withdrawn(const Job& job) {
  if (is_long(job)) room_.set_grown();
  if (!promise_ || promise_->job != job.id) return;
  promise_.reset();
  room_.set_grown();
}

void MatrixPolicy::reordered() {
  promise_.reset();  // a different job may be the first in the queue
}

std::optional<JobId> MatrixPolicy::promised() const {
  return promise_ ? std::optional(promise_->job) : std::nullopt;
}

void MatrixPolicy::drop_promise() {
  if (!promise_) return;
  promise_.reset();
  room_.set_grown();
}

void MatrixPolicy::leave_node(NodeIndex node) {
  if (promise_ && promise_->kept.nodes[node]) room_.set_grown();
}

// ---- the promise ------------------------------------------------------------------------------

// Returns the row with most free cores among those that it may take, or else among those that it
// may hold: there it waits for memory, and the cells do not matter. Returns nullopt if there are
// none.
std::optional<std::size_t> MatrixPolicy::row_to_promise(const Job& job) const {
  const Matrix& matrix = room_.matrix();
  const std::size_t rows = std::min(matrix.row_count(), room_.rows_for(job));
  const auto value = [&](std::size_t row) {
    return std::pair(may_take_row(row, job), matrix.free_cores(row));
  };
  std::optional<std::size_t> best;
  for (std::size_t row = 0; row < rows; ++row) {
    if (may_hold(job, row) && (!best || value(row) > value(*best))) best = row;
  }
  return best;
}

// Promises the places that will probably be free soonest, because few jobs are there. Nothing is
// promised if the nodes that are up could not hold the job at all.
void MatrixPolicy::promise_to(const Job& job) {
  if (job.overlay()) return;
  const Matrix& matrix = room_.matrix();
  const std::size_t count = room_.nodes().size();
  Promise promise{job.id,
                  job.wait,
                  {RowId{0}, std::vector<bool>(count), job.shape.memory, job.request.generic,
                   job.shape.scratch}};
  const auto row = job.is_exclusive() ? std::nullopt : row_to_promise(job);
  if (!row && !may_hold(job, std::nullopt)) return;
  if (row) promise.kept.row = matrix.row_id(*row);
  std::vector<Candidate> places;
  for (NodeIndex index = 0; index < count; ++index) {
    const base::NodeInfo& has = room_.nodes()[index].info;
    if (!room_.may_use(job, index) || has.memory < job.shape.memory) continue;
    if (has.scratch < job.shape.scratch) continue;
    if (!offers(has.generic, job.request.generic)) continue;
    const std::uint32_t tasks = tasks_on_cores(job.shape, matrix.cores(index));
    if (tasks == 0) continue;
    const auto in_row = row ? matrix.jobs_at(*row, index).size() : matrix.load(index);
    const bool is_short = room_.free_memory(job, index) < job.shape.memory ||
                          room_.free_scratch(index) < job.shape.scratch ||
                          !room_.units().has_room(job, index, std::nullopt);
    places.push_back({index, tasks, static_cast<std::uint32_t>(in_row) + (is_short ? 1 : 0)});
  }
  const NodeTable& nodes = room_.nodes();
  auto choice = nodes.topology().choose(at_least(job.shape), nodes.leaves(), places);
  // Its minimum of nodes may not hold it.
  if (!choice) choice = nodes.topology().choose(job.shape, nodes.leaves(), std::move(places));
  if (!choice || (job.is_near && !room_.is_within_switches(job, choice->nodes))) return;
  for (const NodeIndex index : choice->nodes) promise.kept.nodes[index] = true;
  if (promise_) room_.set_grown();  // for the jobs behind the earlier promise
  promise_ = std::move(promise);
}

bool MatrixPolicy::promise_holds() const {
  const Kept& kept = promise_->kept;
  const Job& job = room_.jobs().at(promise_->job);
  const auto row = room_.matrix().position(kept.row);
  if (kept.row != RowId{0} && (!row || !may_hold(job, row))) return false;
  for (NodeIndex index = 0; index < room_.nodes().size(); ++index) {
    if (kept.nodes[index] && !room_.may_use(job, index)) return false;
  }
  return true;
}

// ---- compaction -------------------------------------------------------------------------------

bool MatrixPolicy::is_promised_cell(std::size_t position, const Footprint& cells) const {
  if (!promise_) return false;
  const Kept& kept = promise_->kept;
  if (kept.row != RowId{0} && kept.row != room_.matrix().row_id(position)) return false;
  return std::any_of(cells.nodes.begin(), cells.nodes.end(),
                     [&](NodeIndex node) { return kept.nodes[node]; });
}

// Moves the job into the lowest row below its own where exactly its cores are free.
bool MatrixPolicy::move_down(const Job& job) {
  const Matrix& matrix = room_.matrix();
  const auto from = matrix.position(job.home);
  if (!from) return false;
  for (std::size_t to = 0; to < *from; ++to) {
    if (is_long_row(to) != is_long_row(*from) || !may_hold(job, to)) continue;
    if (!matrix.is_free(to, job.cells) || is_promised_cell(to, job.cells)) continue;
    const bool enters = is_long(job) && !is_in_front(job) && is_front_row(to);
    if (enters && long_has_waited_ && !backfill_.may_start(job)) continue;
    room_.move(job.id, to);
    if (enters) backfill_.placed(job);
    return true;
  }
  return false;
}

// Only jobs in higher rows on the nodes of freed cells can gain. The cells that they leave may let
// others follow.
bool MatrixPolicy::repack() {
  const Matrix& matrix = room_.matrix();
  bool has_moved = false;
  while (const auto freed = room_.take_freed()) {
    const auto position = matrix.position(freed->first);
    if (!position || !rules_.migrates) continue;
    for (std::size_t above = *position + 1; above < matrix.row_count(); ++above) {
      const std::vector<JobId> there = matrix.jobs_at(above, freed->second);
      for (const JobId id : there) has_moved |= move_down(room_.jobs().at(id));
    }
  }
  const std::size_t rows = matrix.row_count();
  room_.drop_empty_rows();
  std::erase_if(long_rows_, [&](RowId row) { return !matrix.position(row); });
  return has_moved || rows != matrix.row_count();
}

}  // namespace score::gang
