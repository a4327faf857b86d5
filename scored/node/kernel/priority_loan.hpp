// Lends real-time priority to a main loop that is late. The lender is the switcher's thread, which
// has that priority, so heartbeats do not depend on the ordinary scheduler. There is one borrower
// and one lender.
#pragma once

#include "base/time.hpp"

#include <atomic>
#include <sys/types.h>

namespace score::node {

class PriorityLoan {
 public:
  // The thread that constructs it is the borrower.
  PriorityLoan();

  // The borrower calls this in its turn, and is late if it does not call again within `time`. Gives
  // back a lent priority, and returns true if there was one.
  bool renew(TimePoint now, Duration time) noexcept;

  // Returns to the lender when lend() is due. TimePoint::max(): never.
  [[nodiscard]] TimePoint due() const noexcept {
    return TimePoint(Duration(due_.load(std::memory_order_relaxed)));
  }

  // Is called by the lender. Does nothing if the borrower has had its turn in the meantime, or if
  // the limits do not allow it.
  void lend(TimePoint now) noexcept;

 private:
  static constexpr Duration::rep kNever = TimePoint::max().time_since_epoch().count();

  pid_t borrower_;
  std::atomic<Duration::rep> due_{kNever};
  std::atomic<bool> is_lent_{false};
};

}  // namespace score::node
