#pragma once
// Determines how long a shepherd waits at the end of its job, and without a node daemon. This
// module is pure.

#include "base/time.hpp"

#include <cstddef>

namespace score::shepherd {

// After the last task has ended, leftover processes are killed until none is left or the kernel
// does not release them.
class LeftoverKill {
 public:
  static constexpr base::Duration kAgain = std::chrono::milliseconds{10};
  static constexpr base::Duration kGrace = std::chrono::seconds{2};  // unkillable after this

  explicit LeftoverKill(base::TimePoint now) : began_(now) {}

  // The argument `children` is how many processes were left when they were killed just now. Returns
  // true if the caller must kill again after kAgain, because the children of killed processes
  // become children of the shepherd one generation at a time.
  [[nodiscard]] bool must_go_on(std::size_t children, base::TimePoint now) const {
    return children > 0 && now - began_ < kGrace;
  }

 private:
  base::TimePoint began_;
};

// Decides when to stop waiting for a node daemon. If the socket's name has been removed, none can
// ever connect again: the cluster was taken down, and the tasks must not continue unsupervised. A
// job that is done is not kept for ever for a daemon that does not return.
class LostDaemon {
 public:
  static constexpr base::Duration kCheckPeriod = std::chrono::seconds{1};
  static constexpr int kUnreachableChecks = 3;  // consecutive checks
  static constexpr base::Duration kDoneLinger = std::chrono::minutes{15};

  explicit LostDaemon(base::TimePoint now) : since_(now) {}

  // Call this every kCheckPeriod. Returns true if the shepherd must give up.
  bool check(bool is_unreachable, bool is_done, base::TimePoint now) {
    unreachable_checks_ = is_unreachable ? unreachable_checks_ + 1 : 0;
    return unreachable_checks_ >= kUnreachableChecks || (is_done && now - since_ > kDoneLinger);
  }

 private:
  base::TimePoint since_;
  int unreachable_checks_ = 0;
};

}  // namespace score::shepherd
