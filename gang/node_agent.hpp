// A node's brain: which attempts it has, in which phase, and the plan its switcher follows. Pure,
// like Cluster. `now` is the node's own monotonic clock; timetables come in cluster time and are
// turned into the node's time with the clock filter.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/model.hpp"
#include "base/result.hpp"
#include "gang/clock_filter.hpp"

namespace score::gang {

using base::AttemptId;
using base::Duration;
using base::Epoch;
using base::TimePoint;

// The timetable in the node's own time: what the switcher thread follows without asking anyone.
struct SwitchPlan {
  Epoch epoch{0};
  TimePoint start{};  // node time
  Duration cycle{0};
  std::vector<base::Segment> segments;
  std::vector<AttemptId> managed;  // frozen unless in the current segment

  friend bool operator==(const SwitchPlan&, const SwitchPlan&) = default;
};

// The switch after `after`: at `at`, exactly `run` of the plan's managed attempts go on.
struct NextSwitch {
  TimePoint at{};
  const std::vector<AttemptId>* run = nullptr;  // into the plan
};
// What runs at `t` (nullptr before the start or without segments).
const std::vector<AttemptId>* running_at(const SwitchPlan& plan, TimePoint t);
// The first boundary after `t` at which the set changes; nullopt: never again.
std::optional<NextSwitch> next_switch(const SwitchPlan& plan, TimePoint t);

// ---- actions ---------------------------------------------------------------------------------

struct LaunchShepherd {  // make the cgroups, start the shepherd, hand it the spec
  base::PlacedTasks placed;
  std::string spec;
};
struct TellShepherdStart {
  AttemptId attempt{0};
};
struct TellShepherdSignal {
  AttemptId attempt{0};
  std::int32_t signal = 0;
};
struct KillAttempt {  // cgroup.kill (or its fallback); the shepherd reports what is left
  AttemptId attempt{0};
};
struct RemoveAttempt {  // shepherd gone and tasks dead: remove cgroups, sockets, records
  AttemptId attempt{0};
};
struct FollowPlan {  // replaces the plan from plan.start on (at once if that is past)
  SwitchPlan plan;
};
struct SendToHead {
  base::NodeToHead message;
};
using NodeAction = std::variant<LaunchShepherd, TellShepherdStart, TellShepherdSignal, KillAttempt,
                                RemoveAttempt, FollowPlan, SendToHead>;
using NodeActions = std::vector<NodeAction>;

// ---- what the shepherd of an attempt tells -------------------------------------------------

struct ShepherdReady {};
struct ShepherdRefused {
  int exit_code = 126;
  std::string reason;
};
struct ShepherdStarted {};
struct ShepherdTaskExited {
  base::TaskExit exit;
};
struct ShepherdAbort {
  base::Rank rank{0};
  int code = 1;
  std::string message;
};
struct ShepherdDone {};  // every task ended and its cgroup is empty
struct ShepherdGone {};  // connection lost for good: it died
using ShepherdEvent = std::variant<ShepherdReady, ShepherdRefused, ShepherdStarted,
                                   ShepherdTaskExited, ShepherdAbort, ShepherdDone, ShepherdGone>;

struct NodeAgentConfig {
  base::NodeInfo info;
  Duration late_after = std::chrono::milliseconds{1};  // a timetable later than this is counted
  Duration replan_above = std::chrono::microseconds{20};  // clock estimate moved: new FollowPlan
};

class NodeAgent {
 public:
  explicit NodeAgent(NodeAgentConfig config);

  // The link to the head. on_connected answers NodeHello with all attempts; on loss the plan is
  // followed on, reports wait for the next hello.
  NodeActions on_connected(TimePoint now);
  NodeActions on_disconnected(TimePoint now);
  NodeActions on_head(const base::HeadToNode& message, TimePoint now);
  NodeActions on_clock(const ClockSample& sample, TimePoint now);
  NodeActions on_shepherd(AttemptId attempt, const ShepherdEvent& event, TimePoint now);
  // A shepherd found after a restart of the daemon (before the first on_connected).
  NodeActions adopt(const base::PlacedTasks& placed, const base::AttemptReport& report,
                    TimePoint now);
  // The daemon ended the attempt for a reason of its own (memory limit): killed, reason reported.
  NodeActions end_attempt(AttemptId attempt, std::string reason, TimePoint now);

  std::vector<base::AttemptReport> attempts() const;
  const SwitchPlan& plan() const { return plan_; }
  const ClockFilter& clock() const { return clock_; }
  std::uint64_t late_count() const { return late_count_; }

 private:
  struct Attempt;
  NodeAgentConfig config_;
  ClockFilter clock_;
  SwitchPlan plan_;
  std::optional<base::Timetable> timetable_;
  std::map<AttemptId, Attempt> attempts_;
  bool connected_ = false;
  std::uint64_t late_count_ = 0;
};

}  // namespace score::gang
