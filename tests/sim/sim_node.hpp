#pragma once
// Simulates one node: the real NodeAgent, a clock with offset and drift, a switcher that follows
// plans with some lateness, and shepherds whose tasks work only while they are thawed.

#include "gang/node/idle_meter.hpp"
#include "gang/node/node_agent.hpp"
#include "tests/sim/events.hpp"
#include "tests/sim/link.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>

namespace score::sim {

using base::AttemptId;
using base::NodeId;

// Determines what the tasks of an attempt will do; the world chooses it, the same for all nodes.
struct Behaviour {
  Duration work{std::chrono::seconds{1}};    // scheduled time a task needs
  std::uint32_t refusing_node = UINT32_MAX;  // node index that refuses
  std::uint32_t hanging_node = UINT32_MAX;   // node index that is told to start and never does
  std::uint32_t failing_rank = UINT32_MAX;
  int code = 0, signal = 0;  // of the failing rank
  bool aborts = false;       // the failing rank calls abort instead
  Duration nap_after{0};     // amount of work before each sleep for `nap`; 0: never sleeps
  Duration nap{0};
  bool deadlocks = false;  // its first nap has no end: it waits for messages
};

class SimNode {
 public:
  struct World {
    Events& events;
    Chance& chance;
    std::function<void(Upward)> send;
    std::function<Behaviour(AttemptId)> behaviour;
    std::function<void(NodeId)> state_changed;  // the set of running tasks may have changed
    bool uses_barriers = false;
    // Faults of a single node are this many times rarer than in a cluster of twelve; otherwise a
    // job of thousands of nodes would always have one.
    std::uint64_t rarity = 1;
  };

  SimNode(NodeId id, base::NodeInfo info, World world);

  void on_connected();
  void on_disconnected();
  void receive(const Downward& message);
  void heartbeat();

  void crash();           // power off: everything is lost
  void power_on();        // with a different clock
  void stop_daemon();     // shepherds continue; nothing stays frozen
  void restart_daemon();  // adopts the shepherds

  [[nodiscard]] bool daemon_runs() const { return agent_.has_value(); }

  struct Shepherd {
    base::PlacedTasks placed;
    base::AttemptPhase phase = base::AttemptPhase::Preparing;
    bool begun = false;                   // has forked its tasks
    std::map<base::Rank, Duration> left;  // work of the tasks that have not ended
    std::vector<base::TaskExit> exits;
    bool killed = false;
    bool frozen = true;
    bool aborted = false;
    std::uint64_t turn = 0;  // number of the last thaw, freeze, nap or waking
    TimePoint counted{};     // time until which work is subtracted from `left`
    TimePoint asleep_until{};
    Duration used{0};      // work so far
    Duration next_nap{0};  // value of `used` at the next nap
    bool background = false;
    bool held = false;  // stopped in the background
    gang::IdleMeter meter;
    TimePoint looked{};
    Duration used_then{0};
    std::uint64_t watch = 0;  // number of the last check
    bool has_turn = false;
    std::optional<TimePoint> waits_for;  // barrier mode: frozen until its gang has met there
  };

  [[nodiscard]] const std::map<AttemptId, Shepherd>& shepherds() const { return shepherds_; }

  [[nodiscard]] std::size_t ended_count() const { return ended_.size(); }

  [[nodiscard]] const gang::NodeAgent& agent() const { return *agent_; }

  // Returns the time since which the node follows a plan that arrived in time, over a link that
  // held; nullopt if it does not now.
  [[nodiscard]] std::optional<TimePoint> orderly_since() const;

  // Corrections of its clock do not reach the plan in force while a new plan is pending.
  [[nodiscard]] bool has_plan_ahead() const { return ahead_.has_value(); }

  // These count attempts in barrier mode: those that started when all their nodes had met, and
  // those that started alone or lost their slice.
  [[nodiscard]] std::uint64_t met() const { return met_; }

  [[nodiscard]] std::uint64_t unmet() const { return unmet_; }

  // Returns the number of reports of (in)activity that the head never received.
  [[nodiscard]] std::uint64_t lost_reports() const { return lost_reports_; }

  // Returns the number of checks that took sleeping attempts for active.
  [[nodiscard]] std::uint64_t fake_wakes() const { return fake_wakes_; }

  [[nodiscard]] const base::NodeInfo& info() const { return info_; }

  [[nodiscard]] NodeId id() const { return id_; }

  // Returns true until the first timetable after a start of the daemon; everything is thawed then.
  [[nodiscard]] bool without_plan() const { return !current_; }

  [[nodiscard]] TimePoint local() const { return to_local(world_.events.now()); }

  // Returns estimated minus true cluster time.
  [[nodiscard]] Duration clock_error(TimePoint cluster_now) const {
    return agent_->clock().to_cluster(local()) - cluster_now;
  }

 private:
  [[nodiscard]] TimePoint to_local(TimePoint t) const;
  [[nodiscard]] TimePoint from_local(TimePoint t) const;
  void carry_out(const gang::NodeActions& actions);
  void launch(const gang::LaunchShepherd& order);
  void check(AttemptId id, bool refuses);
  void start(AttemptId id);
  void begin(AttemptId id);
  void kill(AttemptId id);
  void report(AttemptId id, const gang::ShepherdEvent& event);
  void follow(const gang::SwitchPlan& plan);
  void arm_switch();
  void apply_plan(std::optional<TimePoint> boundary = std::nullopt);
  void switch_one(Shepherd& shepherd, bool runs, std::optional<TimePoint> boundary);
  void meet(AttemptId id, base::Meeting meeting, TimePoint boundary);
  void wait_for_gang(Shepherd& shepherd, TimePoint boundary);
  void end_meeting(const base::MetAll& met);
  void go_alone(Shepherd& shepherd);
  void set_frozen(Shepherd& shepherd, bool frozen);
  void work_on(AttemptId id);
  void count_work(Shepherd& shepherd);
  void sleep(AttemptId id);
  void set_background(Shepherd& shepherd, bool background);
  void check_activity(AttemptId id);
  void judge_unswitched();
  void check_regularly(AttemptId id);
  void judge(Shepherd& shepherd, bool is_fake);
  void task_ends(AttemptId id, base::Rank rank);
  void after(Duration d, std::function<void(SimNode&)> what);

  NodeId id_;
  base::NodeInfo info_;
  World world_;
  Duration offset_{0};
  double drift_ = 0;
  std::optional<gang::NodeAgent> agent_;
  std::map<AttemptId, Shepherd> shepherds_;
  std::map<AttemptId, Shepherd> ended_;  // kept until the head has stored the end
  std::optional<gang::SwitchPlan> current_;
  std::optional<gang::SwitchPlan> ahead_;
  std::uint64_t boot_ = 0;         // incarnation of the machine: old timers are void
  std::uint64_t daemon_ = 0;       // incarnation of the daemon
  std::uint64_t plan_number_ = 0;  // number of the plan of the armed switch
  bool connected_ = false;
  TimePoint trouble_ended_{};
  bool misled_ = false;                  // until the plan ahead starts
  base::Epoch first_epoch_{UINT64_MAX};  // since the node connected
  std::uint64_t met_ = 0, unmet_ = 0;
  std::uint64_t lost_reports_ = 0, fake_wakes_ = 0;
};

}  // namespace score::sim
