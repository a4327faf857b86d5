#pragma once
// Bench is a cluster for tests of Cluster. Its nodes answer at once, the test moves the clock, and
// it keeps the timetables that each node was sent. It checks the invariants after every call.

#include "gang/head/cluster.hpp"
#include "gang/node/switch_plan.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace score::gang {

using namespace std::chrono_literals;
using namespace base::literals;

inline ClusterConfig one_slot() {
  ClusterConfig config;
  config.max_slots = 1;
  return config;
}

// Returns the job as the store of a restarted head has it.
inline RecoveredJob stored_job(const JobView& v) {
  RecoveredJob r;
  r.id = v.id;
  r.user = v.user;
  r.request = v.request;
  r.state = v.state;
  r.attempt = v.attempt;
  r.nodes = v.nodes;
  r.cores = v.cores;
  r.tasks_on_node = v.tasks_on_node;
  r.scheduled = v.scheduled;
  r.started = v.started;
  r.ending = v.ending;
  r.exit_code = v.exit_code;
  r.steps_usage = v.steps_usage;
  return r;
}

class Bench {
 public:
  explicit Bench(ClusterConfig config = {}) : cluster(with_short_timeout(config)) {}

  // Uses the shortest node_timeout, so that silent nodes are lost soon.
  static ClusterConfig with_short_timeout(ClusterConfig config) {
    config.node_timeout = ClusterConfig::kMinNodeTimeout;
    return config;
  }

  // Adds nodes with the names node00, node01 ... and connects them at once.
  void add_nodes(std::uint32_t count, std::uint32_t cores = 1, base::Bytes memory = 8_GiB) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const NodeId id{static_cast<std::uint32_t>(infos.size())};
      infos[id] = {fmt::format("node{:02}", id.value()), cores, memory};
      EXPECT_TRUE(cluster.add_node(id, infos[id].name));
      connect(id);
    }
    now += 10ms;  // later changes need not wait for ClusterConfig::epoch_gap
  }

  // Connects a node. It is sent a new timetable, which replaces those that have not started
  // (NodeAgent, Switcher::follow).
  void connect(NodeId node, std::vector<base::AttemptReport> attempts = {}, Epoch epoch = {}) {
    std::erase_if(history[node], [this](const SwitchPlan& plan) { return plan.start > now; });
    take(cluster.node_connected(node, {infos.at(node), std::move(attempts), epoch}, now));
  }

  static base::ResourceRequest on_nodes(std::uint32_t nodes, std::uint32_t tasks_per_node = 1) {
    base::ResourceRequest request;
    request.nodes = nodes;
    request.tasks_per_node = tasks_per_node;
    return request;
  }

  JobId submit(const base::ResourceRequest& request) {
    const JobId id{++last_job};
    const auto actions = cluster.submit(id, UserId{1000}, request, now);
    EXPECT_TRUE(actions) << actions.error().message();
    if (actions) take(*actions);
    return id;
  }

  void expect_ok(base::Result<Actions> actions) {
    EXPECT_TRUE(actions) << actions.error().message();
    if (actions) take(*actions);
  }

  void cancel(JobId job) { expect_ok(cluster.cancel(job, EndCause::User, now)); }

  void say(NodeId node, const base::NodeToHead& message) {
    take(cluster.node_says(node, message, now));
  }

  // Makes all tasks of the job exit with the code.
  void finish(JobId job, int code = 0) {
    const JobView v = view(job);
    std::uint32_t rank = 0;
    for (std::size_t m = 0; m < v.nodes.size(); ++m) {
      base::Exited exited{v.attempt, {}, {}};
      for (std::uint32_t i = 0; i < v.tasks_on_node[m]; ++i) {
        exited.exits.push_back({base::Rank{rank++}, code, 0});
      }
      say(v.nodes[m], exited);
    }
  }

  // Lets `time` pass: deadlines are met, and live nodes send heartbeats.
  void pass(Duration time) {
    const TimePoint end = now + time;
    while (now < end) {
      TimePoint next = std::min(end, now + 500ms);
      if (const auto due = cluster.next_deadline())
        next = std::min(next, std::max(*due, now + 1us));
      now = next;
      for (const auto& [id, info] : infos) {
        if (!silent.contains(id)) take(cluster.heartbeat(id, now));
      }
      take(cluster.tick(now));
    }
  }

  [[nodiscard]] JobView view(JobId job) const {
    const auto v = cluster.job(job, now);
    EXPECT_TRUE(v);
    return v.value_or(JobView{});
  }

  [[nodiscard]] JobState state(JobId job) const { return view(job).state; }

  // Returns true if the job has its turn on the node at t, by the timetables sent so far.
  [[nodiscard]] bool runs(NodeId node, JobId job, TimePoint t) const {
    const auto found = history.find(node);
    if (found == history.end()) return false;
    const SwitchPlan* in_force = nullptr;
    for (const SwitchPlan& plan : found->second) {
      if (plan.start <= t) in_force = &plan;
    }
    const auto* running = in_force != nullptr ? running_at(*in_force, t) : nullptr;
    return running != nullptr &&
           std::count(running->begin(), running->end(), view(job).attempt) == 1;
  }

  [[nodiscard]] std::optional<SwitchPlan> plan_of(NodeId node) const {
    const auto found = timetables.find(node);
    if (found == timetables.end()) return std::nullopt;
    return make_plan(found->second, found->second.start);
  }

  // Returns the messages of one kind from the last call, each with the node that it went to.
  template <typename Message>
  [[nodiscard]] std::vector<std::pair<NodeId, Message>> sent() const {
    std::vector<std::pair<NodeId, Message>> out;
    for (const Action& action : last) {
      const auto* send = std::get_if<SendToNode>(&action);
      if (send == nullptr) continue;
      if (const auto* m = std::get_if<Message>(&send->message)) out.emplace_back(send->node, *m);
    }
    return out;
  }

  void take(const Actions& actions) {
    last = actions;
    for (const Action& action : actions) carry_out(action);
    const auto sane = cluster.check_invariants(now);
    EXPECT_TRUE(sane) << sane.error().message();
  }

  Cluster cluster;
  TimePoint now{1h};
  std::map<NodeId, base::NodeInfo> infos;
  std::map<NodeId, base::Timetable> timetables;       // the newest timetable sent to each node
  std::map<NodeId, std::vector<SwitchPlan>> history;  // all timetables sent
  std::set<NodeId> silent;                            // send no heartbeat and answer nothing
  std::set<NodeId> deaf;                              // do not answer PrepareTasks
  std::set<NodeId> stuck;                             // do not answer StartTasks
  std::set<NodeId> unkillable;                        // do not answer KillTasks
  Actions last;                                       // of the last call
  std::uint64_t last_job = 0;

 private:
  void carry_out(const Action& action) {
    if (const auto* changed = std::get_if<JobChanged>(&action)) return end_at_limit(changed->job);
    const auto* send = std::get_if<SendToNode>(&action);
    if (send == nullptr || silent.contains(send->node)) return;
    const NodeId node = send->node;
    if (const auto* t = std::get_if<base::SetTimetable>(&send->message)) {
      const auto plan = make_plan(t->timetable, t->timetable.start);
      ASSERT_TRUE(plan);
      EXPECT_GE(plan->start, now) << "a timetable must not start in the past";
      auto& plans = history[node];
      const TimePoint before = plans.empty() ? TimePoint{} : plans.back().start;
      EXPECT_GE(plan->start, before);
      if (plans.size() > 1 && plans.back().start > now) {
        EXPECT_EQ(plan->start, plans.back().start) << "one timetable ahead at most";
      }
      plans.push_back(*plan);
      timetables[node] = t->timetable;
    } else if (const auto* p = std::get_if<base::PrepareTasks>(&send->message)) {
      if (!deaf.contains(node)) answer(node, base::Prepared{p->placed.attempt});
    } else if (const auto* s = std::get_if<base::StartTasks>(&send->message)) {
      if (!stuck.contains(node)) answer(node, base::Started{s->attempt});
    } else if (const auto* k = std::get_if<base::KillTasks>(&send->message)) {
      if (!unkillable.contains(node)) answer(node, base::Exited{k->attempt, {}, {}});
    }
  }

  void end_at_limit(JobId job) {
    const auto v = cluster.job(job, now);
    if (!v || v->limit.empty() || v->ending || base::is_final(v->state)) return;
    const Actions before = last;
    take(*cluster.cancel(job, EndCause::TimeLimit, now));
    last.insert(last.begin(), before.begin(), before.end());
  }

  void answer(NodeId node, const base::NodeToHead& message) {
    const Actions before = last;
    take(cluster.node_says(node, message, now));
    last.insert(last.begin(), before.begin(), before.end());
  }
};

}  // namespace score::gang
