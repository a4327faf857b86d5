// From the matrix to timetables.
//
// Layout: each row with active jobs is a row of the cycle. An active job runs in its home row and,
// by slot unification, in every other row where all its cores are free; where several could, the
// one with the least share for its weight wins. An idle job whose cores a busy one wants is in no
// row: its nodes let it run in the background and watch it.
//
// A node is told only what concerns it: its column, which is the list of attempts of each row of
// the cycle. If all rows run the same there, the cycle does not matter and the column is one row.
// Equal columns need no message, so a change of one job reaches only its nodes, unless the cycle
// itself changes: then all nodes on which jobs take turns.
//
// When: changes on nodes where jobs take turns come into force at a boundary of slices, with notice
// (lead_for()) at least; where one set of jobs runs all the time, after that notice; where nothing
// runs, after idle_lead. A slice in which nobody is left ends at once, after that notice. A node
// has at most one timetable ahead of it: while one is on its way, the next either starts at the
// very same time (and replaces it), or is not made before that has started. It is tested by
// cluster_test.cpp.
#include "base/assert.hpp"
#include "gang/head/cluster_impl.hpp"

#include <algorithm>

namespace score::gang {

struct Cluster::Impl::Start {
  TimePoint at{};
  bool wait = false;   // nothing can be published before `at`
  bool early = false;  // cuts a slice in which nobody is left
};

struct Cluster::Impl::Change {
  const std::vector<NodeIndex>& nodes;  // that must be told
  const std::vector<Column>& columns;
  const Layout& layout;
  bool new_cycle = false;
};

// ---- layout -----------------------------------------------------------------------------------

namespace {

void take_all(CoreMap& taken, const Matrix& matrix, const Footprint& cells) {
  for (std::size_t m = 0; m < cells.nodes.size(); ++m) {
    for (const std::uint32_t core : cells.cores[m]) taken.take(matrix.bit(cells.nodes[m], core));
  }
}

bool all_free(const CoreMap& taken, const Matrix& matrix, const Footprint& cells) {
  for (std::size_t m = 0; m < cells.nodes.size(); ++m) {
    for (const std::uint32_t core : cells.cores[m]) {
      if (taken.taken(matrix.bit(cells.nodes[m], core))) return false;
    }
  }
  return true;
}

}  // namespace

// Idle jobs, as far as some busy job could use their cores instead.
std::set<JobId> Cluster::Impl::background_jobs() const {
  std::set<JobId> out;
  if (!config.idle_detection) return out;
  CoreMap wanted = matrix_.empty_map();
  for (const JobId id : active_) {
    const Job& job = jobs.at(id);
    if (job.activity == JobActivity::Busy) {
      take_all(wanted, matrix_, job.cells);
    } else {
      out.insert(id);
    }
  }
  std::erase_if(out, [&](JobId id) { return all_free(wanted, matrix_, jobs.at(id).cells); });
  return out;
}

Layout Cluster::Impl::lay_out() const {
  Layout layout;
  layout.background = background_jobs();
  std::vector<std::vector<JobId>> at_home(matrix_.row_count());
  for (const JobId id : active_) {
    if (layout.background.contains(id)) continue;
    at_home[*matrix_.position(jobs.at(id).home)].push_back(id);
  }
  for (std::size_t position = 0; position < at_home.size(); ++position) {
    if (at_home[position].empty()) continue;
    WeightedRow row{matrix_.row_id(position), 1};
    CoreMap taken = matrix_.empty_map();
    for (const JobId id : at_home[position]) {
      const Job& job = jobs.at(id);
      row.weight = std::max(row.weight, job.request.weight);
      take_all(taken, matrix_, job.cells);
      layout.runs_in[id].push_back(layout.rows.size());
    }
    layout.rows.push_back(row);
    layout.taken.push_back(std::move(taken));
    layout.at_home.push_back(std::move(at_home[position]));
  }
  unify(layout);
  return layout;
}

void Cluster::Impl::unify(Layout& layout) const {
  struct Guest {
    double share;  // rows it has for its weight
    JobId id;
    const Job* job;
  };

  for (std::size_t row = 0; row < layout.rows.size(); ++row) {
    std::vector<Guest> guests;
    for (std::size_t home = 0; home < layout.rows.size(); ++home) {
      if (home == row) continue;
      for (const JobId id : layout.at_home[home]) {
        const Job& job = jobs.at(id);
        if (!all_free(layout.taken[row], matrix_, job.cells)) continue;
        const auto rows = static_cast<double>(layout.runs_in[id].size());
        guests.push_back({rows / job.request.weight, id, &job});
      }
    }
    std::sort(guests.begin(), guests.end(), [](const Guest& a, const Guest& b) {
      return std::tie(a.share, a.id) < std::tie(b.share, b.id);
    });
    for (const Guest& guest : guests) {
      if (!all_free(layout.taken[row], matrix_, guest.job->cells)) continue;
      take_all(layout.taken[row], matrix_, guest.job->cells);
      layout.runs_in[guest.id].push_back(row);
    }
  }
  for (auto& [id, rows] : layout.runs_in) std::sort(rows.begin(), rows.end());
}

// ---- columns ----------------------------------------------------------------------------------

std::vector<Column> Cluster::Impl::columns_of(const Layout& layout, std::uint64_t serial) const {
  std::vector<Column> columns(nodes.size());
  for (const JobId id : managed_) {
    const Job& job = jobs.at(id);
    const auto runs = layout.runs_in.find(id);
    for (const NodeIndex node : job.cells.nodes) {
      Column& column = columns[node];
      const bool is_background = layout.background.contains(id);
      (is_background ? column.background : column.managed).push_back(job.attempt());
      if (runs == layout.runs_in.end()) continue;
      column.rows.resize(layout.rows.size());
      for (const std::size_t row : runs->second) column.rows[row].push_back(job.attempt());
    }
  }
  for (Column& column : columns) {
    if (column.rows.empty() && !column.managed.empty()) column.rows.resize(1);
    const bool alike = std::all_of(column.rows.begin(), column.rows.end(),
                                   [&](const auto& row) { return row == column.rows.front(); });
    if (alike && column.is_shared()) column.rows.resize(1);
    if (column.is_shared() || (config.switch_always && column.runs_anything())) {
      column.cycle = serial;
    }
  }
  return columns;
}

base::Timetable Cluster::Impl::timetable_of(const Column& column, TimePoint start) const {
  base::Timetable table;
  table.epoch = epoch_;
  table.start = start;
  table.managed = column.managed;
  table.background = column.background;
  if (column.rows.empty()) return table;
  if (config.switch_always && column.runs_anything()) {
    table.slice = cycles_.newest().quantum;
    table.first_slice = cycles_.newest().boundary_from(start + Duration{1}) - start;
  }
  if (!column.is_shared()) {
    table.cycle = config.quantum;
    table.segments = {{Duration::zero(), table.cycle, column.rows.front()}};
    return table;
  }
  // The cycle as seen from `start`: from the middle of a slice if need be, the rest at the end.
  const Cycle& cycle = cycles_.newest();
  table.cycle = cycle.length();
  const Duration phase = (start - cycle.start) % table.cycle;
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
  return table;
}

// ---- when -------------------------------------------------------------------------------------

// Nobody is left in the row whose slice it is at t: waiting for its end would waste the rest.
bool Cluster::Impl::is_slice_over(const Layout& layout, TimePoint t) const {
  const Cycle& cycle = cycles_.newest();
  const auto slice = static_cast<std::size_t>((t - cycle.start) % cycle.length() / cycle.quantum);
  const RowId row = cycle.rows[cycle.order[slice]];
  return std::none_of(layout.rows.begin(), layout.rows.end(),
                      [row](const WeightedRow& r) { return r.row == row; });
}

Duration Cluster::Impl::lead_for(std::size_t told) const {
  const auto more = config.epoch_lead_per_node * static_cast<std::int64_t>(told);
  return std::min(config.epoch_lead + more, config.most_epoch_lead);
}

Cluster::Impl::Start Cluster::Impl::choose_start(const Change& change, TimePoint now) const {
  bool was_shared = false;
  bool runs = false;
  bool will_share = false;
  std::set<TimePoint> ahead;  // what is on its way and concerns this change
  for (const NodeIndex index : change.nodes) {
    const auto& old = nodes[index].column;
    was_shared |= old && old->is_shared();
    runs |= old && old->runs_anything();
    will_share |= change.columns[index].is_shared();
    ahead.insert(nodes[index].column_start);
  }
  const Cycle& newest = cycles_.newest();
  if (was_shared || will_share || change.new_cycle) ahead.insert(newest.start);
  // Nodes that leave a cycle at a later time must not see their jobs in another one before.
  if (change.new_cycle) ahead.insert(latest_start_);
  ahead.erase(ahead.begin(), ahead.upper_bound(now));

  const TimePoint soonest = now + (runs ? lead_for(change.nodes.size()) : config.idle_lead);
  if (ahead.empty()) {
    const bool cut = was_shared && !newest.order.empty();
    const bool early = cut && change.new_cycle && is_slice_over(change.layout, soonest);
    return {cut && !early ? newest.boundary_from(soonest) : soonest, false, early};
  }
  const TimePoint at = *ahead.rbegin();
  const Cycle& before = cycles_.before(at);
  const bool cuts = was_shared && !before.order.empty() && before.boundary_from(at) != at;
  return {at, ahead.size() > 1 || soonest > at || cuts};
}

void Cluster::Impl::begin_cycle(const Layout& layout, std::uint64_t serial, TimePoint start) {
  const Cycle& old = cycles_.before(start);
  // One that is superseded before it comes into force has given nobody a slice. Of whole cycles two
  // are as good as many: all passes grow alike.
  if (cycles_.newest().start != start) {
    const std::uint64_t size = std::max<std::uint64_t>(1, old.order.size());
    const std::uint64_t done = old.slices_by(start);
    const std::uint64_t replayed = done < 2 * size ? done : 2 * size + done % size;
    stride_before_ = stride_;
    for (std::uint64_t i = 0; !old.order.empty() && i < replayed; ++i) {
      stride_before_.ran(old.order[i % size]);
    }
  }
  stride_ = stride_before_;
  stride_.set_rows(layout.rows);
  Cycle cycle;
  cycle.serial = serial;
  cycle.start = start;
  cycle.quantum = config.quantum;
  for (const WeightedRow& row : layout.rows) cycle.rows.push_back(row.row);
  if (!layout.rows.empty()) cycle.order = stride_.plan_cycle();
  cycles_.append(std::move(cycle));
  cycle_rows_ = layout.rows;
  last_serial_ = serial;
}

// ---- publish ----------------------------------------------------------------------------------

void Cluster::Impl::publish(TimePoint now, Actions& out) {
  if (!dirty || recovering_ || now < publish_not_before_) return;
  const Layout layout = lay_out();
  const bool new_cycle = layout.rows != cycle_rows_ || cycles_.newest().quantum != config.quantum;
  const std::uint64_t serial = new_cycle ? last_serial_ + 1 : last_serial_;
  std::vector<Column> columns = columns_of(layout, serial);
  std::vector<NodeIndex> changed;
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    const Node& node = nodes[index];
    if (node.connected && node.column != columns[index]) changed.push_back(index);
  }
  const Start start = choose_start({changed, columns, layout, new_cycle}, now);
  if (start.wait) {
    publish_not_before_ = start.at;
    return;
  }
  dirty = false;
  counters.early_yields += start.early ? 1 : 0;
  note_background(layout, out);
  if (new_cycle || !changed.empty()) publish_not_before_ = now + config.epoch_gap;
  if (new_cycle) begin_cycle(layout, serial, start.at);
  if (!changed.empty()) {
    epoch_ = Epoch{epoch_.value() + 1};
    ++counters.epochs;
  }
  for (const NodeIndex index : changed) {
    nodes[index].column = std::move(columns[index]);
    nodes[index].column_start = start.at;
    latest_start_ = std::max(latest_start_, start.at);
    send(index, base::SetTimetable{timetable_of(*nodes[index].column, start.at)}, out);
  }
  account(layout, start.at);
  for (const JobId id : std::exchange(start_due_, {})) start_on_all(jobs.at(id), now, out);
}

// ---- scheduled time ---------------------------------------------------------------------------

Duration Cluster::Impl::clock_sum(const std::vector<RowId>& rows, TimePoint t) const {
  Duration sum{0};
  for (const RowId row : rows) sum += cycles_.run_by(row, t);
  return sum;
}

// From `start` on every job runs in the rows of the layout.
void Cluster::Impl::account(const Layout& layout, TimePoint start) {
  accounted_.insert(active_.begin(), active_.end());
  for (auto it = accounted_.begin(); it != accounted_.end();) {
    Job& job = jobs.at(*it);
    const auto runs = layout.runs_in.find(*it);
    const std::vector<RowId> rows =
        runs == layout.runs_in.end() ? std::vector<RowId>{} : layout.ids(runs->second);
    if (rows != job.accrual.rows) {
      if (job.accrual.from < start) {
        const Accrual old = job.accrual;
        job.accrual = {start, old.before + clock_sum(old.rows, start) - old.base, {}, {}};
        job.previous = old;
      }
      job.accrual.rows = rows;
      job.accrual.base = clock_sum(rows, job.accrual.from);
      if (!rows.empty() && job.request.scheduled_limit > Duration::zero()) {
        set_deadline(job, DeadlineKind::Scheduled, start);
      }
    }
    it = rows.empty() ? accounted_.erase(it) : std::next(it);
  }
}

Duration Cluster::Impl::scheduled(const Job& job, TimePoint now) const {
  if (job.overlay()) {
    if (!job.started) return Duration::zero();
    return std::max(job.ended.value_or(now) - *job.started, Duration::zero());
  }
  const Accrual& a = now < job.accrual.from && job.previous ? *job.previous : job.accrual;
  if (now <= a.from) return a.before;
  return a.before + clock_sum(a.rows, now) - a.base;
}

// Its processes are killed now, whatever the timetable says.
void Cluster::Impl::stop_accrual(Job& job, TimePoint now) {
  if (job.overlay()) return;
  job.accrual = {now, scheduled(job, now), {}, {}};
  job.previous.reset();
  accounted_.erase(job.id);
}

// How long it takes by the newest cycle until the job has run for `want` more.
Duration Cluster::Impl::time_to_run(const Job& job, Duration want, TimePoint now) const {
  const Cycle& cycle = cycles_.newest();
  const Duration have = scheduled(job, now);
  TimePoint t = std::max(now, cycle.start);
  if (job.accrual.rows.empty() || cycle.order.empty()) return want;
  const TimePoint give_up = t + cycle.length() * 3;
  while (t < give_up) {
    const TimePoint next = cycle.boundary_from(t + Duration{1});
    const Duration got = scheduled(job, next) - have;
    if (got >= want) return next - (got - want) - now;
    t = next;
  }
  return t - now;
}

}  // namespace score::gang
