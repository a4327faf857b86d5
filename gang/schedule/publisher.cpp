// A node is sent only its column: the list of attempts of each row of the cycle. If all rows run
// the same there, the cycle does not matter and the column is one row. Equal columns need no
// message, so a change of one job reaches only its nodes, unless the cycle itself changes: then it
// reaches all nodes on which jobs take turns.
//
// A change takes effect as follows. On nodes where jobs take turns, it does at a boundary of
// slices, with at least the notice of lead_for(). If one set of jobs runs all the time, it does
// after that notice; if nothing runs, after idle_lead. A slice in which no job is left ends at
// once, after that notice. A node has at most one timetable ahead of it. While one is in flight,
// the next either starts at the very same time (and replaces it), or is not made before that one
// has started.
#include "gang/schedule/publisher.hpp"

#include "gang/job/epochs.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

void Publisher::set_incarnation(Epoch incarnation) {
  epoch_ = std::max(epoch_, epochs_before(incarnation));
}

void Publisher::node_connected(NodeIndex node, bool follows) {
  sent_[node] = {};
  if (!follows) sent_[node].column.emplace();
}

// ---- columns ----------------------------------------------------------------------------------

std::vector<Column> Publisher::columns_of(const CycleLayout& layout, std::uint64_t serial) const {
  std::vector<Column> columns(sent_.size());
  for (const JobId id : tables_.jobs.managed()) {
    const Job& job = tables_.jobs.at(id);
    const Job& gang = tables_.jobs.gang_of(job);
    const auto runs = layout.runs_in.find(gang.id);
    const bool is_background = layout.background.contains(gang.id);
    const bool is_displaced = layout.displaced.contains(gang.id);
    const bool fills = may_fill(gang, tables_.config) && !job.shares_channel;
    for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
      if ((*job.members)[m] == Member::Bare) continue;
      Column& column = columns[job.cells.nodes[m]];
      (is_background ? column.background : column.managed).push_back(job.attempt());
      if (is_displaced) column.displaced.push_back(job.attempt());
      if (runs == layout.runs_in.end()) continue;
      column.rows.resize(layout.rows.size());
      for (const std::size_t row : runs->second) column.rows[row].push_back(job.attempt());
      if (fills) column.fill.push_back(job.attempt());
    }
  }
  for (Column& column : columns) {
    if (column.rows.empty() && !column.managed.empty()) column.rows.resize(1);
    const bool is_alike = std::all_of(column.rows.begin(), column.rows.end(),
                                      [&](const auto& row) { return row == column.rows.front(); });
    if (is_alike && column.is_shared()) column.rows.resize(1);
    if (!column.is_shared()) column.fill.clear();  // no job is left out there
    if (column.is_shared() || (tables_.config.switch_always && column.runs_anything())) {
      column.cycle = serial;
    }
  }
  return columns;
}

base::Timetable Publisher::timetable_of(const Column& column, TimePoint start) const {
  base::Timetable table;
  table.epoch = epoch_;
  table.start = start;
  table.managed = column.managed;
  table.background = column.background;
  table.fill = column.fill;
  table.displaced = column.displaced;
  if (column.rows.empty()) return table;
  if (tables_.config.switch_always && column.runs_anything()) {
    table.slice = cycles().newest().quantum;
    table.first_slice = cycles().newest().boundary_from(start + Duration{1}) - start;
  }
  if (column.is_shared()) {
    add_segments(table, column);
  } else {
    table.cycle = tables_.config.quantum;
    table.segments = {{Duration::zero(), table.cycle, column.rows.front()}};
  }
  return table;
}

// Adds the cycle as seen from the timetable's start. If that is in the middle of a slice, the rest
// of that slice comes at the end.
void Publisher::add_segments(base::Timetable& table, const Column& column) const {
  const Cycle& cycle = cycles().newest();
  table.cycle = cycle.length();
  const Duration phase = (table.start - cycle.start) % table.cycle;
  const std::size_t slices = cycle.order.size();
  const auto first = static_cast<std::size_t>(phase / cycle.quantum);
  const Duration cut = phase % cycle.quantum;
  Duration offset{0};
  for (std::size_t i = 0; i <= slices; ++i) {
    const Duration length = i == 0 ? cycle.quantum - cut : i == slices ? cut : cycle.quantum;
    if (length == Duration::zero()) continue;
    const auto& jobs_then = column.rows[cycle.order[(first + i) % slices]];
    if (!table.segments.empty() && table.segments.back().jobs == jobs_then) {
      table.segments.back().length += length;
    } else {
      table.segments.push_back({offset, length, jobs_then});
    }
    offset += length;
  }
}

// ---- when -------------------------------------------------------------------------------------

// Returns true if no job is left in the row whose slice is in progress at t: waiting for its end
// would waste the rest.
bool Publisher::is_slice_over(const CycleLayout& layout, TimePoint t) const {
  const Cycle& cycle = cycles().newest();
  const auto slice = static_cast<std::size_t>((t - cycle.start) % cycle.length() / cycle.quantum);
  return !layout.has(cycle.rows[cycle.order[slice]]);
}

Duration Publisher::lead_for(std::size_t node_count) const {
  const ClusterConfig& config = tables_.config;
  const auto more = config.epoch_lead_per_node * static_cast<std::int64_t>(node_count);
  return std::min(config.epoch_lead + more, config.most_epoch_lead);
}

Publisher::Start Publisher::choose_start(const Change& change, TimePoint now) const {
  bool was_shared = false;
  bool runs = false;
  bool will_share = false;
  std::set<TimePoint> ahead;  // pending starts that concern this change
  for (const NodeIndex node : change.nodes) {
    const auto& old = sent_[node].column;
    was_shared |= old && old->is_shared();
    runs |= old && old->runs_anything();
    will_share |= change.columns[node].is_shared();
    ahead.insert(sent_[node].start);
  }
  const Cycle& newest = cycles().newest();
  if (was_shared || will_share || change.new_cycle) ahead.insert(newest.start);
  // Nodes that leave a cycle at a later time must not see their jobs in a different one before.
  if (change.new_cycle) ahead.insert(latest_start_);
  ahead.erase(ahead.begin(), ahead.upper_bound(now));

  const TimePoint soonest = now + (runs ? lead_for(change.nodes.size()) : tables_.config.idle_lead);
  if (ahead.empty()) {
    const bool cut = was_shared && !newest.order.empty();
    const bool early = cut && change.new_cycle && is_slice_over(change.layout, soonest);
    return {cut && !early ? newest.boundary_from(soonest) : soonest, false, early};
  }
  const TimePoint at = *ahead.rbegin();
  const Cycle& before = cycles().before(at);
  const bool cuts = was_shared && !before.order.empty() && before.boundary_from(at) != at;
  return {at, ahead.size() > 1 || soonest > at || cuts};
}

std::optional<TimePoint> Publisher::next_time() const {
  if (!tables_.jobs.is_changed() || tables_.nodes.is_awaiting()) return std::nullopt;
  return not_before_;
}

// ---- publish ----------------------------------------------------------------------------------

// A restarted head must wait for its nodes first. Until then all of them follow the old head's
// timetables, so their gangs stay in step.
bool Publisher::publish(Step& step) {
  JobTable& jobs = tables_.jobs;
  const NodeTable& nodes = tables_.nodes;
  if (!jobs.is_changed() || nodes.is_awaiting() || step.now < not_before_) return false;
  const CycleLayout layout = lay_out(jobs, matrix_, tables_.config.idle_detection);
  const bool new_cycle = turns_.is_new(layout.rows, tables_.config.quantum);
  const std::uint64_t serial = cycles().newest().serial + (new_cycle ? 1 : 0);
  std::vector<Column> columns = columns_of(layout, serial);
  std::vector<NodeIndex> changed;
  for (NodeIndex node = 0; node < sent_.size(); ++node) {
    if (nodes[node].connected && sent_[node].column != columns[node]) changed.push_back(node);
  }
  const Start start = choose_start({changed, columns, layout, new_cycle}, step.now);
  if (start.wait) {
    not_before_ = start.at;
    return false;
  }
  jobs.mark_published();
  tables_.counters.early_yields += start.early ? 1 : 0;
  note_left_out(layout, step);
  if (new_cycle || !changed.empty()) not_before_ = step.now + tables_.config.epoch_gap;
  if (new_cycle) turns_.begin(layout.rows, start.at, tables_.config.quantum);
  send(changed, columns, start.at, step);
  account(layout, start.at);
  return true;
}

void Publisher::send(const std::vector<NodeIndex>& nodes, std::vector<Column>& columns,
                     TimePoint start, Step& step) {
  if (nodes.empty()) return;
  epoch_ = Epoch{epoch_.value() + 1};
  ++tables_.counters.epochs;
  latest_start_ = std::max(latest_start_, start);
  for (const NodeIndex node : nodes) {
    sent_[node] = {std::move(columns[node]), start};
    tables_.nodes.send(node, base::SetTimetable{timetable_of(*sent_[node].column, start)}, step);
  }
}

void Publisher::note_left_out(const CycleLayout& layout, Step& step) {
  for (const JobId id : tables_.jobs.active()) {
    Job& job = tables_.jobs.at(id);
    const JobId gang = tables_.jobs.gang_of(job).id;
    const bool is_background = layout.background.contains(gang);
    const bool is_displaced = layout.displaced.contains(gang);
    if (job.background == is_background && job.displaced == is_displaced) continue;
    if (job.background != is_background && !job.is_step()) {
      ++(is_background ? tables_.counters.idle_left : tables_.counters.idle_returned);
    }
    job.background = is_background;
    job.displaced = is_displaced;
    step.job_changed(id);
  }
}

// ---- scheduled time ---------------------------------------------------------------------------

// Records that every job runs in the rows of the layout from `start` on.
void Publisher::account(const CycleLayout& layout, TimePoint start) {
  accounted_.insert(tables_.jobs.active().begin(), tables_.jobs.active().end());
  for (auto it = accounted_.begin(); it != accounted_.end();) {
    Job& job = tables_.jobs.at(*it);
    const std::vector<RowId> rows = layout.rows_of(tables_.jobs.gang_of(job).id);
    const bool has_changed = job.time.edit().run_in(rows, start, cycles());
    if (has_changed && !rows.empty() && job.is_young) {
      tables_.deadlines.set(job.id, DeadlineKind::Age, start);
    }
    if (has_changed && !rows.empty() && job.request.scheduled_limit > Duration::zero()) {
      tables_.deadlines.set(job.id, DeadlineKind::Scheduled, start);
      if (job.request.limit_signal != 0) {
        tables_.deadlines.set(job.id, DeadlineKind::Signal, start);
      }
    }
    it = rows.empty() ? accounted_.erase(it) : std::next(it);
  }
}

Duration Publisher::scheduled(const Job& job, TimePoint now) const {
  if (!job.overlay()) return job.time->at(now, cycles());
  if (!job.started) return Duration::zero();
  return std::max(job.ended.value_or(now) - *job.started, Duration::zero());
}

void Publisher::stop(Job& job, TimePoint now) {
  if (job.overlay()) return;
  job.time.edit().stop(now, cycles());
  accounted_.erase(job.id);
}

base::Result<void> Publisher::check() const {
  if (tables_.jobs.is_changed() || tables_.nodes.is_awaiting()) return {};
  const CycleLayout layout = lay_out(tables_.jobs, matrix_, tables_.config.idle_detection);
  const std::vector<Column> columns = columns_of(layout, cycles().newest().serial);
  for (NodeIndex node = 0; node < sent_.size(); ++node) {
    if (tables_.nodes[node].connected && sent_[node].column != columns[node]) {
      return base::fail(base::Errc::WrongState, "{} follows an old timetable",
                        tables_.nodes.name(node));
    }
  }
  return {};
}

}  // namespace score::gang
