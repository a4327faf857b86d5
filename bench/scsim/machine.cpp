// This file is tested by simulate_test.cpp.
#include "bench/scsim/machine.hpp"

#include <algorithm>
#include <tuple>
#include <utility>
#include <variant>

namespace score::scsim {

using gang::JobEvent;

namespace {

gang::ClusterConfig config_of(const MachineOptions& options) {
  gang::ClusterConfig config;
  config.placement = options.placement;
  config.max_slots = options.slots;
  config.quantum = options.quantum;
  config.long_limit = options.long_limit;
  config.long_slots = options.long_slots;
  config.long_shared = options.long_shared;
  config.long_weight = options.long_weight;
  config.young_time = options.young_time;
  config.long_early = options.long_early;
  if (options.memory.page_rate > 0) config.memory_share = base::MemoryShare::Always;
  config.memory_cost_percent = options.memory.cost_percent;
  config.memory_turn_max = options.memory.turn_max;
  return config;
}

// Returns leaf switches with so many nodes each, below groups of sixteen, below one switch.
std::vector<gang::Switch> switches_of(std::uint32_t nodes, std::uint32_t on_leaf) {
  constexpr std::uint32_t kGroup = 16;
  std::vector<gang::Switch> leaves, groups, all;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    if (node % on_leaf == 0) leaves.push_back({fmt::format("leaf{}", node / on_leaf), {}, {}});
    leaves.back().nodes.push_back(fmt::format("n{}", node));
  }
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    if (leaf % kGroup == 0) groups.push_back({fmt::format("group{}", leaf / kGroup), {}, {}});
    groups.back().switches.push_back(leaves[leaf].name);
  }
  gang::Switch top{"top", {}, {}};
  for (const gang::Switch& group : groups) top.switches.push_back(group.name);
  all = std::move(leaves);
  all.insert(all.end(), groups.begin(), groups.end());
  all.push_back(std::move(top));
  return all;
}

}  // namespace

Machine::Machine(const MachineOptions& options)
    : tables_(config_of(options)),
      placer_(tables_),
      parking_(tables_, placer_),
      page_rate_(options.memory.page_rate) {
  constexpr std::uint64_t kSwapTimes = 16;  // the memory
  for (std::uint32_t n = 0; n < options.nodes; ++n) {
    const std::string name = fmt::format("n{}", n);
    std::ignore = tables_.nodes.add(base::NodeId{n}, name);
    placer_.add_node();
    base::NodeInfo info{name, 1, kNodeMemory};
    if (page_rate_ > 0) info.swap = kNodeMemory * kSwapTimes;
    tables_.nodes.set_hardware(n, info);
    tables_.nodes.connect(n, step_);
    placer_.follow_hardware(n);
  }
  if (options.switch_nodes > 0) {
    const auto switches = switches_of(options.nodes, options.switch_nodes);
    tables_.nodes.set_topology(*gang::Topology::make(switches));
  }
  std::ignore = placer_.place_waiting(TimePoint{});
  step_.actions.clear();
}

// ---- jobs come and go -------------------------------------------------------------------------

void Machine::submit(const MachineJob& wanted, TimePoint now) {
  step_.now = now;
  base::ResourceRequest request;
  request.nodes = wanted.nodes;
  request.tasks_per_node = 1;
  request.memory_per_node = wanted.memory;
  request.scheduled_limit = wanted.limit;
  const auto shape = gang::shape_of(request);
  gang::Job& job = tables_.jobs.add(wanted.id, base::UserId{wanted.user}, request, *shape);
  job.submitted = now;
  if (placer_.try_new(job)) start(job);
}

void Machine::start(gang::Job& job) {
  ++job.attempts;
  job.is_young = tables_.config.young_time > Duration::zero();
  job.members.edit().ask_all(job.cells.nodes.size());
  for (std::size_t m = 0; m < job.cells.nodes.size(); ++m) {
    job.members.edit().start(m, Duration::zero());
    job.members.edit().began(m);
  }
  job.idleness.edit().begin(job.cells.nodes.size());
  tables_.jobs.change(job, JobEvent::Place, step_);
  if (!start_takes_time_) enter_timetable(job);
  for (const gang::NodeIndex node : job.cells.nodes) {
    const gang::Reservations& here = placer_.on_node(node);
    memory_high_ = std::max(memory_high_, here.memory - here.lent);
  }
  started_.push_back(job.id);
}

void Machine::enter_timetable(gang::Job& job) {
  tables_.jobs.change(job, JobEvent::AllPrepared, step_);
  job.started = step_.now;
}

void Machine::prepared(JobId id, TimePoint now) {
  step_.now = now;
  enter_timetable(tables_.jobs.at(id));
}

void Machine::finish(JobId id, TimePoint now) {
  step_.now = now;
  gang::Job& job = tables_.jobs.at(id);
  job.outcome.edit().decide(base::JobState::Completed, {}, 0);
  job.time.edit().stop(now, turns_.cycles());
  job.forget_activity();
  tables_.jobs.change(job, JobEvent::End, step_);
  tables_.jobs.end(job, step_);
  placer_.unplace(job);
  tables_.jobs.forget(id);
  step_.actions.clear();
}

void Machine::set_idle(JobId id, bool idle, TimePoint now) {
  step_.now = now;
  gang::Job& job = tables_.jobs.at(id);
  base::Activity activity;
  activity.idle = idle;
  for (std::size_t m = 0; m < job.members->count(); ++m) job.idleness.edit().report(m, activity);
  job.idleness.edit().judge(*job.members, now,
                            {tables_.config.unsettled_idle, tables_.config.deadlock_after});
  tables_.jobs.mark_changed();
}

void Machine::age(JobId id) {
  tables_.jobs.at(id).is_young = false;
  tables_.jobs.mark_changed();
}

// ---- turns ------------------------------------------------------------------------------------

// A node serves its orders one after the other, at its rate.
void Machine::take_orders() {
  for (const gang::Action& action : step_.actions) {
    const auto* send = std::get_if<gang::SendToNode>(&action);
    const auto* order = send ? std::get_if<base::ParkTasks>(&send->message) : nullptr;
    const gang::Job* job = order ? tables_.jobs.find(base::job_of(order->attempt)) : nullptr;
    if (job == nullptr) continue;
    const auto node = *tables_.nodes.find(send->node);
    TimePoint begin = step_.now;
    for (const auto& [end, other] : paging_) {
      if (other.first == node) begin = std::max(begin, end);
    }
    const double seconds = double(job->shape.memory.value()) / page_rate_;
    paging_.emplace(begin + Duration{static_cast<std::int64_t>(seconds * 1e9)},
                    std::pair(node, *order));
  }
  step_.actions.clear();
}

std::optional<TimePoint> Machine::next_paging() const {
  std::optional<TimePoint> next = parking_.next_time();
  if (!paging_.empty()) next = std::min(next.value_or(TimePoint::max()), paging_.begin()->first);
  return next;
}

void Machine::page(TimePoint now) {
  step_.now = now;
  while (!paging_.empty() && paging_.begin()->first <= now) {
    const auto [node, order] = paging_.begin()->second;
    paging_.erase(paging_.begin());
    gang::Job* job = tables_.jobs.find(base::job_of(order.attempt));
    const auto member = job != nullptr ? job->member_on(node) : std::nullopt;
    if (!member || job->attempt() != order.attempt) continue;
    ++pagings_;
    base::ParkReport report{order.attempt, order.out};
    report.moved = job->shape.memory;
    report.took =
        Duration{static_cast<std::int64_t>(double(job->shape.memory.value()) / page_rate_ * 1e9)};
    parking_.reported(*job, *member, report, step_);
  }
  take_orders();
}

std::vector<JobId> Machine::settle(TimePoint now) {
  step_.now = now;
  if (page_rate_ > 0) {
    parking_.settle(step_);
    take_orders();
  }
  for (const JobId id : placer_.place_waiting(now)) start(tables_.jobs.at(id));
  if (tables_.jobs.is_changed()) take_turns(now);
  step_.actions.clear();
  return std::exchange(started_, {});
}

// Follows gang::Publisher: a change starts at the next boundary of slices, but at once where no
// rows take turns or no job is left in the slice.
TimePoint Machine::start_of(const gang::CycleLayout& layout, TimePoint now) const {
  const gang::Cycle& newest = turns_.cycles().newest();
  if (newest.start > now) return newest.start;
  if (newest.rows.size() < 2) return now;
  const auto slice =
      static_cast<std::size_t>((now - newest.start) % newest.length() / newest.quantum);
  const bool is_over = !layout.has(newest.rows[newest.order[slice]]);
  return is_over ? now : newest.boundary_from(now);
}

void Machine::take_turns(TimePoint now) {
  ++layouts_;
  const gang::CycleLayout layout =
      gang::lay_out(tables_.jobs, placer_.matrix(), tables_.config.idle_detection);
  TimePoint start = now;
  if (turns_.is_new(layout.rows, tables_.config.quantum)) {
    start = start_of(layout, now);
    switches_ = switches(start);
    turns_.begin(layout.rows, start, tables_.config.quantum);
  }
  for (const JobId id : tables_.jobs.active()) {
    gang::Job& job = tables_.jobs.at(id);
    job.background = layout.background.contains(id);
    job.time.edit().run_in(layout.rows_of(id), start, turns_.cycles());
  }
  tables_.jobs.mark_published();
}

std::uint64_t Machine::switches(TimePoint now) const {
  const gang::Cycle& newest = turns_.cycles().newest();
  return switches_ + (newest.rows.size() > 1 ? newest.slices_by(now) : 0);
}

Duration Machine::scheduled(JobId id, TimePoint now) const {
  return tables_.jobs.at(id).time->at(now, turns_.cycles());
}

double Machine::share(JobId id) const {
  const gang::Cycle& cycle = turns_.cycles().newest();
  std::uint64_t slices = 0;
  for (const gang::RowId row : tables_.jobs.at(id).time->rows()) slices += cycle.slices_of(row);
  return cycle.order.empty() ? 0 : double(slices) / double(cycle.order.size());
}

// Skips whole cycles, because the job has the same slices in each.
std::optional<TimePoint> Machine::look_again(JobId id, Duration missing, TimePoint now) const {
  const gang::Cycle& cycle = turns_.cycles().newest();
  const gang::ScheduledTime& time = *tables_.jobs.at(id).time;
  std::int64_t slices = 0;
  for (const gang::RowId row : time.rows()) slices += cycle.slices_of(row);
  if (slices == 0) return std::nullopt;
  const auto whole = missing / (cycle.quantum * slices) - 1;
  if (whole > 2) return std::max(now, cycle.start) + cycle.length() * (whole - 1);
  return now + std::max(Duration{1}, time.time_to_run(missing, now, turns_.cycles()));
}

bool Machine::has_memory(const MachineJob& job) const {
  std::uint32_t enough = 0;
  for (gang::NodeIndex node = 0; node < tables_.nodes.size(); ++node) {
    enough += placer_.on_node(node).memory + job.memory <= kNodeMemory ? 1 : 0;
  }
  return enough >= job.nodes;
}

base::Result<void> Machine::check() const {
  if (auto r = tables_.jobs.check(); !r) return r;
  return placer_.check();
}

}  // namespace score::scsim
