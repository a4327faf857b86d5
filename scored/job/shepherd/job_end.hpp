#pragma once
// How long a shepherd waits at the end of its job, and without a node daemon. Pure.

#include "base/time.hpp"

#include <cstddef>

namespace score::shepherd {

// After the last task has ended: what the tasks left behind is killed until nothing is left or the
// kernel does not let it go.
class LeftoverKill {
 public:
  static constexpr base::Duration kAgain = std::chrono::milliseconds{10};
  static constexpr base::Duration kGrace = std::chrono::seconds{2};  // unkillable after this

  explicit LeftoverKill(base::TimePoint now) : began_(now) {}

  // children: how many were left when they were killed just now. True: kill again after kAgain, for
  // the children of killed processes become ours one generation at a time.
  [[nodiscard]] bool must_go_on(std::size_t children, base::TimePoint now) const {
    return children > 0 && now - began_ < kGrace;
  }

 private:
  base::TimePoint began_;
};

// While no node daemon is connected. If the socket's name is gone, none can ever connect again: the
// cluster was taken down, and the tasks must not go on unseen. A job that is done is not kept for
// ever for a daemon that does not come back.
class LostDaemon {
 public:
  static constexpr base::Duration kCheckPeriod = std::chrono::seconds{1};
  static constexpr int kUnreachableChecks = 3;  // in a row
  static constexpr base::Duration kDoneLinger = std::chrono::minutes{15};

  explicit LostDaemon(base::TimePoint now) : since_(now) {}

  // Every kCheckPeriod. True: give up.
  bool check(bool is_unreachable, bool is_done, base::TimePoint now) {
    unreachable_checks_ = is_unreachable ? unreachable_checks_ + 1 : 0;
    return unreachable_checks_ >= kUnreachableChecks || (is_done && now - since_ > kDoneLinger);
  }

 private:
  base::TimePoint since_;
  int unreachable_checks_ = 0;
};

}  // namespace score::shepherd
