// A node's part of the scheduler: which attempts it has, in which phase, and the plan that its
// switcher follows. Pure, like Cluster. `now` is the node's own monotonic clock; timetables come in
// cluster time and are turned into the node's time with the clock filter.
#pragma once

#include "base/model/model.hpp"
#include "gang/job/attempt_phase.hpp"
#include "gang/node/clock_filter.hpp"
#include "gang/node/switch_plan.hpp"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace score::gang {

// ---- actions ---------------------------------------------------------------------------------

struct LaunchShepherd {  // make the cgroups (frozen if it has cores), start the shepherd
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

// All tasks have ended: nothing is switched any more. The shepherd stays: it alone still knows the
// exit statuses if the daemon is killed before the head has stored them.
struct RetireAttempt {
  AttemptId attempt{0};
};

// The head has stored the end, or there is nothing to keep: remove shepherd, cgroups, records.
struct RemoveAttempt {
  AttemptId attempt{0};
};

// Replaces the plan from plan.start on (at once if that is past); until then the plan before it is
// followed. At most one plan lies ahead: a later FollowPlan replaces the one that has not started.
struct FollowPlan {
  SwitchPlan plan;
};

struct SendToHead {
  base::NodeToHead message;
};

// The attempt's gang has met: it goes on, on this node too.
struct EndMeeting {
  base::MetAll met;
};

using NodeAction = std::variant<LaunchShepherd, TellShepherdStart, TellShepherdSignal, KillAttempt,
                                RetireAttempt, RemoveAttempt, FollowPlan, SendToHead, EndMeeting>;
using NodeActions = std::vector<NodeAction>;

// ---- what the shepherd of an attempt reports -----------------------------------------------

struct ShepherdReady {};

struct ShepherdRefused {
  int exit_code = 126;
  std::string reason;
  bool may_retry = false;  // see base::Refused
};

struct ShepherdStarted {};

struct ShepherdTaskExited {
  base::TaskExit exit;  // its time is the node's
};

struct ShepherdAbort {
  base::Rank rank{0};
  int code = 1;
  std::string message;
  TimePoint asked{};  // the node's time; 0: not known
  bool left = false;
};

struct ShepherdDone {};  // every task ended and its cgroup is empty

struct ShepherdGone {  // connection lost for good: it died
  int signal = 0;      // that ended it; 0: another end, or not known
};

using ShepherdEvent = std::variant<ShepherdReady, ShepherdRefused, ShepherdStarted,
                                   ShepherdTaskExited, ShepherdAbort, ShepherdDone, ShepherdGone>;

struct NodeAgentConfig {
  base::NodeInfo info;
  Duration late_after = std::chrono::milliseconds{1};     // a timetable later than this is counted
  Duration replan_above = std::chrono::microseconds{20};  // clock estimate moved: new FollowPlan
};

class NodeAgent {
 public:
  explicit NodeAgent(NodeAgentConfig config);

  // The link to the head. on_connected answers NodeHello with all attempts, then the reports that
  // had to wait; without a link the plan is still followed, and reports wait for the next hello.
  NodeActions on_connected(TimePoint now);
  NodeActions on_disconnected(TimePoint now);
  // A timetable that comes before the first clock sample waits for it. One with an epoch that is
  // not greater is ignored; one that is malformed is reported as TimetableApplied with late max().
  NodeActions on_head(const base::HeadToNode& message, TimePoint now);

  // After on_connected(): ClockFilter::set_same().
  void set_same_clock(bool same) { clock_.set_same(same); }

  // Every connection begins with an exchange: without it no timetable can be followed.
  NodeActions on_clock(const ClockSample& sample, TimePoint now);
  NodeActions on_shepherd(AttemptId attempt, const ShepherdEvent& event, TimePoint now);
  // A shepherd found after a restart of the daemon (before the first on_connected). If its tasks
  // run they go on unfrozen until the head sends a timetable; if they were not started yet, its
  // cgroup is frozen again, as at its birth. One that was started may still be forking: only if it
  // `has_begun` that is reported, else ShepherdStarted follows.
  NodeActions adopt(const base::PlacedTasks& placed, const base::AttemptReport& report,
                    bool has_begun, TimePoint now);
  // Processor time that its tasks used at idle priority; reported with their end. Ignored for an
  // attempt that is unknown or has ended.
  void set_filled(AttemptId attempt, Duration filled);
  // The kernel has killed so many of its processes because memory was exhausted; reported with its
  // end, and with the reason unless it has another. Ignored as above.
  void note_oom_kills(AttemptId attempt, std::uint32_t kills, std::string reason);
  // The daemon ended the attempt for a reason of its own (memory limit): killed, reason reported.
  NodeActions end_attempt(AttemptId attempt, std::string reason, TimePoint now);

  // What the daemon sees of an attempt's tasks; a change is reported to the head.
  NodeActions on_activity(AttemptId attempt, const base::Activity& activity, TimePoint now);
  // To be called about once a second: repeats reports that the head seems not to have, because its
  // timetable does not reflect them.
  NodeActions repeat_activities(TimePoint now);

  // Barrier mode: the node has brought the attempt to a meeting. Reported once: a node that loses
  // the link then keeps its gang waiting for a slice.
  NodeActions on_meeting(const base::MeetingReached& reached);

  // Ascending by attempt.
  [[nodiscard]] std::vector<base::AttemptReport> attempts() const;

  // The newest plan; the one before it is in force until its start.
  [[nodiscard]] const SwitchPlan& plan() const { return plan_; }

  [[nodiscard]] const ClockFilter& clock() const { return clock_; }

  [[nodiscard]] std::uint64_t late_count() const { return late_count_; }

  // Messages and reports that are not listed for the attempt's phase.
  [[nodiscard]] std::uint64_t unexpected_count() const { return unexpected_count_; }

 private:
  struct Attempt {
    base::PlacedTasks placed;
    Phase phase = Phase::Preparing;
    std::map<base::Rank, base::TaskExit> exits;
    std::string reason;  // why the node ended it
    Duration filled{0};
    std::uint32_t oom_kills = 0;
    base::Activity activity;
    std::optional<base::AbortRequested> abort;
    bool killed = false;
    bool started = false;
  };

  using Attempts = std::map<AttemptId, Attempt>;

  std::optional<Phase> step(AttemptId id, AttemptEvent event);
  void prepare(const base::PrepareTasks& message, NodeActions& out);
  void start(AttemptId id, NodeActions& out);
  void signal(const base::SignalTasks& message, NodeActions& out);
  void kill(AttemptId id, NodeActions& out);
  void forget(AttemptId id, NodeActions& out);
  void set_timetable(const base::Timetable& timetable, TimePoint now, NodeActions& out);
  [[nodiscard]] TimePoint in_cluster_time(TimePoint node, TimePoint now) const;
  [[nodiscard]] base::TaskExit in_cluster_time(base::TaskExit exit, TimePoint now) const;
  [[nodiscard]] base::AbortRequested abort_of(AttemptId id, const ShepherdAbort& abort,
                                              TimePoint now) const;
  void refuse(AttemptId id, const ShepherdRefused& why, NodeActions& out);
  void task_ended(Attempt& attempt, const base::TaskExit& exit, NodeActions& out);
  void finish(AttemptId id, NodeActions& out);
  void follow(TimePoint now, NodeActions& out);
  void say(base::NodeToHead message, NodeActions& out) const;
  [[nodiscard]] base::Exited exited_message(AttemptId id) const;

  NodeAgentConfig config_;
  ClockFilter clock_;
  SwitchPlan plan_;
  std::optional<base::Timetable> timetable_;  // of this connection; in cluster time
  bool following_ = false;                    // plan_ was made from timetable_
  Epoch greatest_epoch_{0};
  Attempts attempts_;
  bool connected_ = false;
  std::uint64_t late_count_ = 0;
  std::uint64_t unexpected_count_ = 0;
};

}  // namespace score::gang
