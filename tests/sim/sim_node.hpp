#pragma once
// One simulated node: the real NodeAgent, a clock with offset and drift, a switcher that follows
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

// What the tasks of an attempt will do; the same on all nodes, chosen by the world.
struct Behaviour {
  Duration work{std::chrono::seconds{1}};    // scheduled time a task needs
  std::uint32_t refusing_node = UINT32_MAX;  // node index that refuses
  std::uint32_t hanging_node = UINT32_MAX;   // ... that is told to start and never does
  std::uint32_t failing_rank = UINT32_MAX;
  int code = 0, signal = 0;  // of the failing rank
  bool aborts = false;       // the failing rank calls abort instead
  Duration nap_after{0};     // after so much work it sleeps for `nap`, again and again; 0: never
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
    std::function<void(NodeId)> state_changed;  // who runs here may have changed
    bool uses_barriers = false;
    // How many times rarer than in a cluster of twelve a node has a mishap of its own: a job of
    // thousands of nodes would never be without.
    std::uint64_t rarity = 1;
  };

  SimNode(NodeId id, base::NodeInfo info, World world);

  void on_connected();
  void on_disconnected();
  void receive(const Downward& message);
  void heartbeat();

  void crash();           // power off: nothing survives
  void power_on();        // with another clock
  void stop_daemon();     // shepherds go on; nothing stays frozen
  void restart_daemon();  // adopts them

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
    TimePoint counted{};     // work until then is in `left`
    TimePoint asleep_until{};
    Duration used{0};      // work so far
    Duration next_nap{0};  // by `used`
    bool background = false;
    bool held = false;  // stopped in the background
    gang::IdleMeter meter;
    TimePoint looked{};
    Duration used_then{0};
    std::uint64_t watch = 0;  // number of the last look
    bool has_turn = false;
    std::optional<TimePoint> waits_for;  // barrier mode: frozen until its gang has met there
  };

  [[nodiscard]] const std::map<AttemptId, Shepherd>& shepherds() const { return shepherds_; }

  [[nodiscard]] std::size_t ended_count() const { return ended_.size(); }

  [[nodiscard]] const gang::NodeAgent& agent() const { return *agent_; }

  // Since when it follows a plan that it got in time, over a link that held; nullopt: not now.
  [[nodiscard]] std::optional<TimePoint> orderly_since() const;

  // Corrections of its clock do not reach the plan in force while another is on its way.
  [[nodiscard]] bool has_plan_ahead() const { return ahead_.has_value(); }

  // Barrier mode: attempts that went when all their nodes had met, and those that went alone or
  // lost their slice.
  [[nodiscard]] std::uint64_t met() const { return met_; }

  [[nodiscard]] std::uint64_t unmet() const { return unmet_; }

  // Reports of (in)activity that the head never got.
  [[nodiscard]] std::uint64_t lost_reports() const { return lost_reports_; }

  // Looks at sleepers that took them for awake.
  [[nodiscard]] std::uint64_t fake_wakes() const { return fake_wakes_; }

  [[nodiscard]] const base::NodeInfo& info() const { return info_; }

  [[nodiscard]] NodeId id() const { return id_; }

  // True until the first timetable after a start of the daemon: everything is thawed.
  [[nodiscard]] bool without_plan() const { return !current_; }

  [[nodiscard]] TimePoint local() const { return to_local(world_.events.now()); }

  // Estimated minus true cluster time.
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
  void tell(AttemptId id, const gang::ShepherdEvent& event);
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
  void look(AttemptId id);
  void judge_unswitched();
  void look_regularly(AttemptId id);
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
  std::uint64_t plan_number_ = 0;  // the armed switch is of this one
  bool connected_ = false;
  TimePoint trouble_ended_{};
  bool misled_ = false;                  // until the plan ahead starts
  base::Epoch first_epoch_{UINT64_MAX};  // of this connection
  std::uint64_t met_ = 0, unmet_ = 0;
  std::uint64_t lost_reports_ = 0, fake_wakes_ = 0;
};

}  // namespace score::sim
