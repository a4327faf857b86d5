// This file is tested by cluster_test.cpp.
#include "base/text/hostlist.hpp"
#include "gang/head/cluster_impl.hpp"

#include <algorithm>
#include <span>

namespace score::gang {

namespace {

constexpr std::size_t kMostNamesBytes = 160;  // in a reason: it is a line of a table
constexpr std::size_t kNamesShown = 8;        // where all of them are too many

std::string join(const std::vector<std::string>& names) {
  std::string all = base::compress_hostlist(names);
  if (all.size() <= kMostNamesBytes || names.size() <= kNamesShown) return all;
  const std::span first(names.data(), kNamesShown);
  return fmt::format("{} and {} more", base::compress_hostlist(first), names.size() - kNamesShown);
}

}  // namespace

JobView Cluster::Impl::view(const Job& job, TimePoint now) const {
  JobView v;
  v.id = job.id;
  v.user = job.user;
  v.attempt = job.attempts == 0 ? AttemptId{0} : job.attempt();
  v.state = job.state;
  v.request = job.request;
  for (const NodeIndex index : job.cells.nodes) v.nodes.push_back(nodes[index].id);
  v.tasks_on_node = job.tasks_on_node;
  v.cores = job.cells.cores;
  v.tasks_per_core = job.shape.tasks_per_core;
  if (const auto row = matrix_.position(job.home); row && job.placed) {
    v.slot = base::SlotIndex{static_cast<std::uint32_t>(*row)};
  }
  const Cycle& cycle = cycles_.newest();
  std::uint32_t slices = 0;
  for (const RowId row : job.accrual.rows) slices += cycle.slices_of(row);
  v.rows_used = static_cast<std::uint32_t>(job.accrual.rows.size());
  if (slices > 0) v.share = static_cast<double>(slices) / static_cast<double>(cycle.order.size());
  if (job.overlay() && job.state == JobState::Running) v.share = 1;
  v.scheduled = scheduled(job, now);
  v.submitted = job.submitted;
  v.started = job.started;
  v.ended = job.ended;
  v.reasons = job.state == JobState::Pending ? wait_reasons(job) : job.reasons;
  if (job.activity == JobActivity::Deadlocked) v.reasons.emplace_back(kDeadlockReason);
  v.exit_code = job.exit_code;
  for (std::size_t rank = 0; rank < job.exits.size(); ++rank) {
    if (job.exit_known[rank]) v.exits.push_back(job.exits[rank]);
  }
  v.ending = job.ending;
  v.keep_going = job.keep_going;
  v.activity = job.activity;
  v.background = job.background;
  v.restarts = job.restarts;
  v.lost = job.lost;
  return v;
}

NodeView Cluster::Impl::view(const Node& node) const {
  return {node.id,           node.info,        node.state,    node.drained,
          node.drain_reason, node.down_reason, node.reserved, {node.jobs.begin(), node.jobs.end()}};
}

MatrixView Cluster::Impl::matrix_view() const {
  const Cycle& cycle = cycles_.newest();
  MatrixView v{epoch_, config.quantum, cycle.length(), {}};
  if (!cycle.order.empty()) v.start = cycle.start;
  std::vector<std::vector<JobId>> in_row(cycle.rows.size());
  for (const JobId id : active_) {
    for (const RowId row : jobs.at(id).accrual.rows) {
      if (const auto index = cycle.index_of(row)) in_row[*index].push_back(id);
    }
  }
  for (const std::uint32_t index : cycle.order) {
    const auto position = matrix_.position(cycle.rows[index]).value_or(0);
    v.slices.push_back(
        {base::SlotIndex{static_cast<std::uint32_t>(position)}, cycle.quantum, in_row[index]});
  }
  return v;
}

// ---- what would be ----------------------------------------------------------------------------

// As submit(), with a job that is in no list.
base::Result<JobView> Cluster::Impl::plan(const base::ResourceRequest& request) const {
  const auto shape = check(request);
  if (!shape) return shape.error();
  Job job;
  job.request = request;
  job.shape = *shape;
  job.allowed = allowed_nodes(request);
  job.wait = {request.queue != base::Queue::High, -std::int64_t{request.priority}, submissions_ + 1,
              JobId{0}};
  JobView v;
  v.request = request;
  v.tasks_per_core = shape->tasks_per_core;
  const auto spot = request.held || recovering_ ? std::nullopt : find_spot(job);
  if (!spot) {
    v.reasons = wait_reasons(job);
    return v;
  }
  v.state = JobState::Launching;
  for (const NodeIndex index : spot->choice.nodes) v.nodes.push_back(nodes[index].id);
  v.tasks_on_node = spot->choice.tasks_on_node;
  if (!job.overlay()) {
    const std::size_t row = spot->row.value_or(matrix_.row_count());
    v.slot = base::SlotIndex{static_cast<std::uint32_t>(row)};
  }
  return v;
}

// ---- why a job waits --------------------------------------------------------------------------

std::vector<std::string> Cluster::Impl::wait_reasons(const Job& job) const {
  std::vector<std::string> out;
  if (job.request.held) out.emplace_back("held until it is released");
  if (recovering_) {
    std::vector<std::string> awaited;
    for (const Node& node : nodes) {
      if (node.awaited) awaited.push_back(node.info.name);
    }
    out.push_back(fmt::format("the head restarted and waits for {}", join(awaited)));
  }
  node_reasons(job, out);
  room_reasons(job, out);
  if (out.empty()) {
    out.emplace_back(find_spot(job) ? "is placed with the next change"
                                    : "the nodes that can be used have too few cores");
  }
  return out;
}

void Cluster::Impl::node_reasons(const Job& job, std::vector<std::string>& out) const {
  std::map<std::string, std::vector<std::string>> unusable;
  std::uint32_t usable = 0;
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    const Node& node = nodes[index];
    if (!job.allowed.empty() && (index >= job.allowed.size() || !job.allowed[index])) continue;
    const char* why = node.drained                       ? "drained"
                      : node.state == NodeState::Unknown ? "not seen yet"
                      : node.state == NodeState::Down    ? "down"
                      : node.state == NodeState::Suspect ? "suspect"
                      : !node.zombies.empty()            ? "still ending an earlier job"
                      : !may_use(job, index)             ? "busy"
                                                         : nullptr;
    if (why == nullptr) {
      ++usable;
    } else {
      unusable[why].push_back(node.info.name);
    }
  }
  const std::uint32_t needed = std::max(1U, job.shape.nodes);
  if (usable < needed) {
    out.push_back(fmt::format("needs {} nodes, {} can be used", needed, usable));
  }
  if (!find_spot(job)) {
    for (const auto& [why, which] : unusable) {
      out.push_back(fmt::format("{}: {}", why, join(which)));
    }
  }
}

void Cluster::Impl::room_reasons(const Job& job, std::vector<std::string>& out) const {
  if (find_spot(job)) return;
  std::vector<std::string> memory;
  std::vector<std::string> exclusive;
  std::vector<std::string> occupied;
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    if (!may_use(job, index)) continue;
    const Node& node = nodes[index];
    if (free_memory(job, index) < job.shape.memory) memory.push_back(node.info.name);
    if (job.overlay()) continue;
    if (node.exclusive) exclusive.push_back(node.info.name);
    if (matrix_.load(index) > 0) occupied.push_back(node.info.name);
  }
  if (!memory.empty()) {
    out.push_back(fmt::format("memory: {} a node is not free on {}",
                              base::human_bytes(job.shape.memory), join(memory)));
  }
  if (!exclusive.empty()) out.push_back(fmt::format("exclusive jobs hold {}", join(exclusive)));
  const bool wants_alone = job.request.queue == base::Queue::Exclusive && !job.overlay();
  if (wants_alone && !occupied.empty()) {
    out.push_back(fmt::format("exclusive: other jobs hold {}", join(occupied)));
  } else if (!job.overlay() && matrix_.row_count() >= config.max_slots) {
    out.push_back(fmt::format("too few free cores in each of the {} slots", config.max_slots));
  }
  if (is_behind_promise(job)) {
    out.push_back(fmt::format("room is kept for job {}, which is ahead in line", promise_->job));
  }
}

}  // namespace score::gang
