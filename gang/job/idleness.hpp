#pragma once
// Is a running job idle, or deadlocked? Judged from what its nodes report of their shares. Pure.
//
// The argument is that of Mattern's four counters ("Algorithms for distributed termination
// detection", 1987): if two snapshots, the second begun after the first was complete, show each
// task without work and the same sums, sent == received, then nothing was in flight between them.
// For a task that acted between the snapshots was woken by a message (or by something outside,
// and then it did not wait for messages only). The first such message was received after its
// receiver's first report and sent before its sender's, so it is in the first sum of the sent and
// not in the first sum of the received; the sums would differ.
//
// The two snapshots are, for idle, each node's own two checks (it reports after two equal ones, and
// the nodes of a gang check at the same slice ends); for deadlocked also the reports that hold at
// the begin and at the end of IdleLimits::deadlock_after. A report with other counters begins that
// time anew. It holds if
//   - a node reports each change, and its reports come in order and before its later signs of life;
//   - every node was heard lately (limits::kSuspectAfter), and what it sends takes less than the
//     rest of deadlock_after, so that no report from before the begin of that time is on its way;
//   - `waits` is true only of tasks that nothing but a message can wake, and a task that it is true
//     of counts a message as received at the latest when it takes it;
//   - of messages to and from a share that has ended, what is not received by then never is: its
//     counters are gone, and the rest of the job is judged by the time alone.
// Wrong reports of a user's tasks make only the user's own job idle, busy or deadlocked.

#include "base/model/model.hpp"
#include "gang/job/members.hpp"

#include <optional>
#include <vector>

namespace score::gang {

// What a running job does, as far as its nodes know.
enum class JobActivity : std::uint8_t {
  Busy,        // needs the processor, or it is not known
  Idle,        // waits on every node; its slices go to other jobs that need them
  Deadlocked,  // waits for messages only, and no task is left to send one
};

struct IdleLimits {
  base::Duration unsettled{0};       // Idle although messages are in flight
  base::Duration deadlock_after{0};  // every task waits for messages, for this long
  bool is_heard = true;              // no node of it is silent
};

class Idleness {
 public:
  // A new attempt: nothing was reported.
  void begin(std::size_t member_count);
  // Busy again, as after a suspension; the last reports stay valid.
  void reset();
  void report(std::size_t member, const base::Activity& activity);

  // Judges anew. Without a change the next report, or judge_again(), may change the answer.
  JobActivity judge(const Members& members, base::TimePoint now, const IdleLimits& limits);

  [[nodiscard]] JobActivity activity() const { return activity_; }

  // What is known of its tasks that wait, in no order.
  [[nodiscard]] std::vector<base::TaskWait> task_waits() const;

  // Set by judge(): when the passing of time alone may change its answer.
  [[nodiscard]] std::optional<base::TimePoint> judge_again() const { return judge_again_; }

 private:
  struct Whole {           // of all shares together
    bool idle = false;     // none needs the processor
    bool waits = false;    // every task waits for messages only
    bool settled = false;  // no message is in flight
    bool partial = false;  // a share has ended: what it sent is not known
  };

  [[nodiscard]] Whole whole(const Members& members) const;

  std::vector<base::Activity> shares_;  // [member]
  std::optional<base::TimePoint> idle_since_;
  std::optional<base::TimePoint> waits_since_;
  std::optional<base::TimePoint> judge_again_;
  JobActivity activity_ = JobActivity::Busy;
};

}  // namespace score::gang
