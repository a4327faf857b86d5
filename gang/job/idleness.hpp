#pragma once
// Is a running job idle, or deadlocked? Judged from what its nodes report of their shares. Pure.

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

  // Set by judge(): when the passing of time alone may change its answer.
  [[nodiscard]] std::optional<base::TimePoint> judge_again() const { return judge_again_; }

 private:
  struct Whole {           // of all shares together
    bool idle = false;     // none needs the processor
    bool waits = false;    // every task waits for messages only
    bool settled = false;  // no message is in flight
  };

  [[nodiscard]] Whole whole(const Members& members) const;

  std::vector<base::Activity> shares_;  // [member]
  std::optional<base::TimePoint> idle_since_;
  std::optional<base::TimePoint> waits_since_;
  std::optional<base::TimePoint> judge_again_;
  JobActivity activity_ = JobActivity::Busy;
};

}  // namespace score::gang
