// Real-time priority for a main loop that is late: the switcher's thread has it, and lends it, so
// that heartbeats do not depend on the ordinary scheduler. One borrower, one lender.
#pragma once

#include "base/time.hpp"

#include <atomic>
#include <sys/types.h>

namespace score::node {

class PriorityLoan {
 public:
  // The borrower is the thread that makes it.
  PriorityLoan();

  // Borrower: it has its turn, and is late if it has not called this again within `time`. Gives
  // back what was lent. True: something was.
  bool renew(TimePoint now, Duration time) noexcept;

  // Lender: lend() is for then. TimePoint::max(): never.
  [[nodiscard]] TimePoint due() const noexcept {
    return TimePoint(Duration(due_.load(std::memory_order_relaxed)));
  }

  // Lender: nothing happens if the borrower had its turn meanwhile, or if the limits do not allow
  // it.
  void lend(TimePoint now) noexcept;

 private:
  static constexpr Duration::rep kNever = TimePoint::max().time_since_epoch().count();

  pid_t borrower_;
  std::atomic<Duration::rep> due_{kNever};
  std::atomic<bool> is_lent_{false};
};

}  // namespace score::node
