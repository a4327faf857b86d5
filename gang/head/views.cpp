// This file is tested by placement_test.cpp.
#include "gang/head/views.hpp"

#include "gang/forecast/expected_start.hpp"
#include "gang/head/wait_reasons.hpp"
#include "gang/job/deadlock.hpp"
#include "gang/lifecycle/idle_jobs.hpp"
#include "gang/lifecycle/parking.hpp"
#include "gang/schedule/request_check.hpp"
#include "gang/schedule/room.hpp"

namespace score::gang {

namespace {

SlotIndex slot_of(std::size_t position) {
  return SlotIndex{static_cast<std::uint32_t>(position)};
}

void fill_share(JobView& v, const Job& job, const Cycle& cycle) {
  std::uint32_t slices = 0;
  for (const RowId row : job.time->rows()) slices += cycle.slices_of(row);
  v.rows_used = static_cast<std::uint32_t>(job.time->rows().size());
  if (slices > 0) v.share = static_cast<double>(slices) / static_cast<double>(cycle.order.size());
  if (job.overlay() && job.state == JobState::Running) v.share = 1;
}

// While a step of it is busy, a script that waits for its steps is busy.
JobActivity activity_of(const Shown& shown, const Job& job) {
  for (const JobId id : *job.steps) {
    const Job& step = shown.tables.jobs.at(id);
    if (step.is_active() && step.idleness->activity() == JobActivity::Busy)
      return JobActivity::Busy;
  }
  return job.idleness->activity();
}

std::vector<std::string> reasons_of(const Shown& shown, const Job& job) {
  if (job.state == JobState::Pending) return wait_reasons(shown.tables, shown.placer, job);
  std::vector<std::string> reasons = job.outcome->reasons();
  if (job.idleness->activity() == JobActivity::Deadlocked) {
    reasons.push_back(deadlock_reason(job));
  }
  if (std::string why = parked_reason(job, shown.tables.calendar.now()); !why.empty())
    reasons.push_back(std::move(why));
  if (job.displaced && !job.parked->is_away()) {
    const bool is_stopped = shown.tables.jobs.gang_of(job).is_stopped();
    reasons.emplace_back(is_stopped ? kStoppedReason : kDisplacedReason);
  }
  return reasons;
}

}  // namespace

JobView view_of(const Shown& shown, const Job& job, TimePoint now) {
  JobView v;
  v.id = job.id;
  v.user = job.user;
  v.attempt = job.attempts == 0 ? AttemptId{0} : job.attempt();
  v.state = job.state;
  v.request = job.request;
  for (const NodeIndex node : job.cells.nodes) v.nodes.push_back(shown.tables.nodes[node].id);
  v.tasks_on_node = job.tasks_on_node;
  v.cores = job.cells.cores;
  v.units = job.units;
  v.tasks_per_core = job.shape.tasks_per_core;
  const Job& gang = shown.tables.jobs.gang_of(job);
  if (const auto row = shown.placer.matrix().position(gang.home); row && job.placed) {
    v.slot = slot_of(*row);
  }
  fill_share(v, job, shown.publisher.cycles().newest());
  v.scheduled = shown.publisher.scheduled(job, now);
  v.filled = job.filled;
  v.usage = job.usage;
  v.usage.add_step(job.steps_usage);
  v.usage.paged_out = job.parked->moved_out;
  v.usage.paged_in = job.parked->moved_in;
  v.usage.parked = job.parked->time_away(now);
  v.steps_usage = job.steps_usage;
  v.submitted = job.submitted;
  v.started = job.started;
  v.ended = job.ended;
  v.reasons = reasons_of(shown, job);
  v.exit_code = job.outcome->exit_code();
  v.exits = job.outcome->exits();
  v.ending = job.outcome->ending();
  v.limit = job.limit;
  v.keep_going = job.keep_going;
  v.activity = activity_of(shown, job);
  v.suspicion = job.is_active() ? job.idleness->suspicion() : 0;
  if (v.state == JobState::Running && v.activity != JobActivity::Busy) {
    v.waits = wait_lines(job.idleness->task_waits());
  }
  v.background = job.background;
  v.restarts = job.restarts;
  v.asked_restarts = job.asked_restarts;
  v.relaunches = job.relaunches;
  v.is_untried = shown.ending.is_untried(job);
  v.lost = job.lost;
  v.residence = job.parked->residence;
  v.in_swap = job.parked->in_swap();
  v.paged_out = job.parked->moved_out;
  v.paged_in = job.parked->moved_in;
  v.paging = job.parked->took;
  v.parked = v.usage.parked;
  return v;
}

NodeView view_of(const Shown& shown, NodeIndex index) {
  const NodeTable& nodes = shown.tables.nodes;
  const Node& node = nodes[index];
  const Reservations& here = shown.placer.on_node(index);
  const Reservation* reserved = shown.tables.calendar.on(index);
  return {node.id,
          node.info,
          node.state,
          node.drained,
          node.drain_reason,
          node.down_reason,
          here.memory,
          {here.jobs.begin(), here.jobs.end()},
          shown.placer.units().on_node(index).in_use(),
          reserved != nullptr ? reserved->name : std::string(),
          here.scratch,
          nodes.topology().name_of(nodes.leaves()[index])};
}

MatrixView matrix_view(const Shown& shown) {
  const Cycle& cycle = shown.publisher.cycles().newest();
  MatrixView v{shown.publisher.epoch(), shown.tables.config.quantum, cycle.length(), {}};
  if (!cycle.order.empty()) v.start = cycle.start;
  std::vector<std::vector<JobId>> in_row(cycle.rows.size());
  for (const JobId id : shown.tables.jobs.active()) {
    for (const RowId row : shown.tables.jobs.at(id).time->rows()) {
      if (const auto index = cycle.index_of(row)) in_row[*index].push_back(id);
    }
  }
  for (const std::uint32_t index : cycle.order) {
    const auto position = shown.placer.matrix().position(cycle.rows[index]).value_or(0);
    v.slices.push_back({slot_of(position), cycle.quantum, in_row[index]});
  }
  return v;
}

// The view is computed as for a submission, with a job that is in no list.
base::Result<JobView> plan_view(const Shown& shown, const base::ResourceRequest& request,
                                UserId user) {
  const NodeTable& nodes = shown.tables.nodes;
  const auto shape = request.inside != JobId{0}
                         ? check_step(shown.tables.jobs, nodes, request)
                         : check_request(nodes, request, shown.tables.config.overcommit);
  if (!shape) return shape.error();
  if (auto has = shown.placer.licenses().check(request); !has) return has.error();
  Job job;
  job.user = user;
  job.request = request;
  job.is_near = request.switches > 0;
  job.shape = *shape;
  job.allowed = allowed_nodes(nodes, request);
  job.wait = shown.tables.jobs.next_wait_key(request, JobId{0});
  job.wait = shown.placer.key_of(job);
  JobView v;
  v.request = request;
  v.tasks_per_core = shape->tasks_per_core;
  const auto spot =
      request.held || nodes.is_awaiting() ? std::nullopt : shown.placer.find_spot(job);
  if (!spot || !shown.placer.is_open(job, &*spot)) {
    v.reasons = wait_reasons(shown.tables, shown.placer, job);
    v.expected_start = expected_start(shown.tables, shown.placer, shown.publisher, job);
    return v;
  }
  v.state = JobState::Launching;
  for (const NodeIndex node : spot->choice.nodes) v.nodes.push_back(nodes[node].id);
  v.tasks_on_node = spot->choice.tasks_on_node;
  if (job.has_row()) v.slot = slot_of(spot->row.value_or(shown.placer.matrix().row_count()));
  return v;
}

}  // namespace score::gang
