#pragma once
// Decides whether a running job is idle or deadlocked, from what its nodes report of their shares.
// It has no I/O and no clock.
//
// The argument is that of Mattern's four counters ("Algorithms for distributed termination
// detection", 1987). Suppose that two snapshots, the second begun after the first was complete,
// show each task without work and the same sums, sent == received. Then nothing was in flight
// between them. For a task that acted between the snapshots was woken by a message (or by something
// outside, and then it did not wait for messages only). The first such message was received after
// its receiver's first report and sent before its sender's. So it is in the first sum of the sent
// and not in the first sum of the received, and the sums would differ.
//
// For idle, the two snapshots are each node's own two checks: it reports after two equal ones, and
// the nodes of a gang check at the same slice ends. For deadlocked they are also the reports that
// hold at the beginning and at the end of IdleLimits::deadlock_after. A report with other counters
// restarts that time. The argument holds under these conditions:
//   - A node reports each change, and its reports come in order and before its later signs of life.
//   - Every node was heard lately (limits::kSuspectAfter), and its messages take less than the rest
//     of deadlock_after. So no report from before the beginning of that time is in flight.
//   - `waits` is true only for tasks that nothing but a message can wake. Such a task counts a
//     message as received at the latest when it takes it.
//   - A message to or from a share that has ended is never received unless it was received by then.
//     The counters of that share are gone, and the rest of the job is judged by the time alone.
// A task may also communicate by means that no report counts, such as memory that it shares with a
// task of its node. So with IdleLimits::must_confirm the job is suspect at first: somebody has to
// look at the tasks twice and to call confirm().
// Wrong reports of a user's tasks make only the user's own job idle, busy or deadlocked.

#include "base/model/model.hpp"
#include "gang/job/members.hpp"

#include <optional>
#include <vector>

namespace score::gang {

// JobActivity is the current activity of a running job, as far as its nodes know.
enum class JobActivity : std::uint8_t {
  Busy,        // needs the processor, or it is not known
  Idle,        // waits on every node; its slices go to other jobs that need them
  Deadlocked,  // waits for messages only, and no task is left to send one
};

struct IdleLimits {
  base::Duration unsettled{0};       // until Idle although messages are in flight
  base::Duration deadlock_after{0};  // how long every task must wait for messages
  bool is_heard = true;              // none of its nodes is silent
  bool must_confirm = false;         // a deadlock must be confirmed
};

class Idleness {
 public:
  // Begins a new attempt, without reports.
  void begin(std::size_t member_count);
  // Makes the job busy again, for example after a suspension. The last reports stay valid.
  void reset();
  void report(std::size_t member, const base::Activity& activity);

  // Returns a new judgement. If nothing has changed, the next report, or judge_again(), may change
  // the answer.
  JobActivity judge(const Members& members, base::TimePoint now, const IdleLimits& limits);

  [[nodiscard]] JobActivity activity() const { return activity_; }

  // Returns since when every share has been idle; nullopt if one is not.
  [[nodiscard]] std::optional<base::TimePoint> idle_since() const { return idle_since_; }

  // Returns the number of the suspicion that must be confirmed; 0: none.
  [[nodiscard]] std::uint32_t suspicion() const { return is_suspect_ ? suspicions_ : 0; }

  // Takes the answer to a suspicion; judge() then takes it into account. Each refusal doubles the
  // time until the next suspicion. An answer to an earlier suspicion is ignored.
  void confirm(std::uint32_t suspicion, bool is_deadlock, base::TimePoint now);

  // Returns what is known of its waiting tasks, in no order.
  [[nodiscard]] std::vector<base::TaskWait> task_waits() const;

  // Returns the time, set by judge(), at which its answer may change without a report.
  [[nodiscard]] std::optional<base::TimePoint> judge_again() const { return judge_again_; }

 private:
  struct Whole {           // all shares together
    bool idle = false;     // no share needs the processor
    bool waits = false;    // every task waits for messages only
    bool settled = false;  // no message is in flight
    bool partial = false;  // a share has ended, so the messages that it sent are unknown
  };

  [[nodiscard]] Whole whole(const Members& members) const;

  void forget_suspicion() { is_suspect_ = is_confirmed_ = false; }

  std::vector<base::Activity> shares_;  // [member]
  std::optional<base::TimePoint> idle_since_;
  std::optional<base::TimePoint> waits_since_;
  std::optional<base::TimePoint> judge_again_;
  JobActivity activity_ = JobActivity::Busy;
  bool is_suspect_ = false;
  bool is_confirmed_ = false;     // the current wait is a deadlock
  std::uint32_t suspicions_ = 0;  // so far
  std::uint32_t refusals_ = 0;    // of these
};

}  // namespace score::gang
