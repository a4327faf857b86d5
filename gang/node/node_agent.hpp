// NodeAgent is a node's part of the scheduler: it knows which attempts the node has, in which
// phase, and the plan that its switcher follows. Like Cluster it has no I/O. `now` is the node's
// own monotonic clock. Timetables come in cluster time; the clock filter converts them to the
// node's time.
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

struct LaunchShepherd {  // create the cgroups and start the shepherd
  base::PlacedTasks placed;
  std::string spec;
};

struct StartShepherd {
  AttemptId attempt{0};
};

struct SignalShepherd {
  AttemptId attempt{0};
  std::int32_t signal = 0;
};

struct KillAttempt {  // cgroup.kill (or its fallback); the shepherd reports what is left
  AttemptId attempt{0};
};

// All tasks have ended, so nothing is switched any more. The shepherd stays: only it still knows
// the exit statuses if the daemon is killed before the head has stored them.
struct RetireAttempt {
  AttemptId attempt{0};
};

// The head has stored the end, or there is nothing to keep: the daemon removes shepherd, cgroups
// and records.
struct RemoveAttempt {
  AttemptId attempt{0};
};

// This plan replaces the earlier one from plan.start on (at once if that is past). At most one plan
// lies ahead: a later FollowPlan replaces the one that has not started.
struct FollowPlan {
  SwitchPlan plan;
};

struct SendToHead {
  base::NodeToHead message;
};

// The attempt's gang has met, so the attempt continues on this node too.
struct EndMeeting {
  base::MetAll met;
};

// The memory of the running attempt is to be written to swap once it is frozen for good, or read
// back. The caller answers with on_parked().
struct ParkAttempt {
  base::ParkTasks order;
};

using NodeAction =
    std::variant<LaunchShepherd, StartShepherd, SignalShepherd, KillAttempt, RetireAttempt,
                 RemoveAttempt, FollowPlan, SendToHead, EndMeeting, ParkAttempt>;
using NodeActions = std::vector<NodeAction>;

// ---- reports of an attempt's shepherd ---------------------------------------------------------

struct ShepherdReady {};

struct ShepherdRefused {
  int exit_code = 126;
  std::string reason;
  bool may_retry = false;  // see base::Refused
};

struct ShepherdStarted {};

struct ShepherdTaskExited {
  base::TaskExit exit;  // with a time of the node
};

struct ShepherdAbort {
  base::Rank rank{0};
  int code = 1;
  std::string message;
  TimePoint asked{};  // the node's time; 0: not known
  bool left = false;
};

struct ShepherdDone {  // every task ended and its cgroup is empty
  base::Usage usage{};
};

struct ShepherdGone {  // connection lost for good: it died
  int signal = 0;      // the signal that ended it; 0: a different end, or not known
  base::Usage usage{};
};

using ShepherdEvent = std::variant<ShepherdReady, ShepherdRefused, ShepherdStarted,
                                   ShepherdTaskExited, ShepherdAbort, ShepherdDone, ShepherdGone>;

struct NodeAgentConfig {
  base::NodeInfo info;
  Duration late_after = std::chrono::milliseconds{1};     // a timetable later than this is counted
  Duration replan_above = std::chrono::microseconds{20};  // a larger clock step makes a new plan
};

class NodeAgent {
 public:
  explicit NodeAgent(NodeAgentConfig config);

  // The shell calls these when the link to the head changes. on_connected() answers with NodeHello
  // and all attempts, then with the delayed reports. Without a link the plan is still followed, and
  // reports wait for the next hello.
  NodeActions on_connected(TimePoint now);
  NodeActions on_disconnected(TimePoint now);
  // Handles a message of the head. A timetable that comes before the first clock sample waits for
  // it. One whose epoch is not greater is ignored; a malformed one, and one whose epoch is out of
  // range (gang/job/epochs.hpp), is reported as TimetableApplied with late max().
  NodeActions on_head(const base::HeadToNode& message, TimePoint now);

  // Sets the incarnation of the head that has welcomed the node; must follow on_connected().
  // Timetables of later heads are refused from now on; until the first call they are not.
  void set_head(Epoch incarnation);

  // Calls ClockFilter::set_same(); must follow on_connected().
  void set_same_clock(bool same) { clock_.set_same(same); }

  // Every connection begins with a clock exchange, because no timetable can be followed without it.
  NodeActions on_clock(const ClockSample& sample, TimePoint now);
  NodeActions on_shepherd(AttemptId attempt, const ShepherdEvent& event, TimePoint now);
  // Adopts a shepherd that was found after a restart of the daemon (before the first on_connected).
  // If its tasks run, they continue unfrozen until the head sends a timetable. A started shepherd
  // may still be forking: Started is reported only if it `has_begun`; otherwise ShepherdStarted
  // follows.
  NodeActions adopt(const base::PlacedTasks& placed, const base::AttemptReport& report,
                    bool has_begun, TimePoint now);
  // Sets the processor time that its tasks used at idle priority; it is reported with their end.
  // The call is ignored for an attempt that is unknown or has ended.
  void set_filled(AttemptId attempt, Duration filled);
  // Records that the kernel has killed this many of its processes because memory was exhausted. It
  // is reported with the end, and with the reason unless there is one already. The call is ignored
  // as above.
  void note_oom_kills(AttemptId attempt, std::uint32_t kills, std::string reason);
  // Kills the attempt for a reason of the daemon's own (memory limit), which is reported.
  NodeActions end_attempt(AttemptId attempt, std::string reason, TimePoint now);

  // Records what the daemon observes of an attempt's tasks; a change is reported to the head.
  NodeActions on_activity(AttemptId attempt, const base::Activity& activity, TimePoint now);
  // Repeats reports that the head seems to lack, because its timetable does not reflect them. The
  // caller should call it about once a second.
  NodeActions repeat_activities(TimePoint now);

  // Lets displaced attempts run if the head has not been heard for kHeadless and the node has none
  // of the jobs for which they wait. A new timetable stops them again. Must be called about once a
  // second; a head that is stopped keeps its connection, so the caller says whether it hears it.
  NodeActions release_displaced(bool hears_head, TimePoint now);
  static constexpr Duration kHeadless = std::chrono::seconds{10};  // a restart takes less

  // The node has brought the attempt to a meeting in barrier mode. This is reported once: a node
  // that then loses the link keeps its gang waiting for one slice.
  NodeActions on_meeting(const base::MeetingReached& reached);

  // Answers a ParkAttempt. A report that the memory is out is repeated at each connection until
  // the memory is back.
  NodeActions on_parked(const base::ParkReport& report);

  // Returns the reports in ascending order of attempts.
  [[nodiscard]] std::vector<base::AttemptReport> attempts() const;

  // Returns the newest plan; the one before it is in force until its start.
  [[nodiscard]] const SwitchPlan& plan() const { return plan_; }

  [[nodiscard]] const ClockFilter& clock() const { return clock_; }

  [[nodiscard]] std::uint64_t late_count() const { return late_count_; }

  // Returns the number of messages and reports that are not listed for the attempt's phase.
  [[nodiscard]] std::uint64_t unexpected_count() const { return unexpected_count_; }

 private:
  struct Attempt {
    base::PlacedTasks placed;
    Phase phase = Phase::Preparing;
    std::map<base::Rank, base::TaskExit> exits;
    std::string reason;  // why the node ended it
    Duration filled{0};
    std::uint32_t oom_kills = 0;
    base::Usage usage;
    base::Activity activity;
    std::optional<base::AbortRequested> abort;
    std::optional<base::ParkReport> parked;  // its memory is out
    bool killed = false;
    bool started = false;
  };

  using Attempts = std::map<AttemptId, Attempt>;

  std::optional<Phase> step(AttemptId id, AttemptEvent event);
  void prepare(const base::PrepareTasks& message, NodeActions& out);
  void start(AttemptId id, NodeActions& out);
  void signal(const base::SignalTasks& message, NodeActions& out);
  void kill(AttemptId id, NodeActions& out);
  void park(const base::ParkTasks& message, NodeActions& out);
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
  void send(base::NodeToHead message, NodeActions& out) const;
  [[nodiscard]] base::Exited exited_message(AttemptId id) const;

  NodeAgentConfig config_;
  ClockFilter clock_;
  SwitchPlan plan_;
  std::optional<base::Timetable> timetable_;  // of this connection; in cluster time
  bool following_ = false;                    // plan_ was made from timetable_
  Epoch greatest_epoch_{0};
  Epoch head_{UINT64_MAX};  // incarnation
  Attempts attempts_;
  bool connected_ = false;
  TimePoint heard_at_{};  // the head
  std::uint64_t late_count_ = 0;
  std::uint64_t unexpected_count_ = 0;
};

}  // namespace score::gang
