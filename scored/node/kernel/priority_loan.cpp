#include "scored/node/kernel/priority_loan.hpp"

#include <sched.h>
#include <unistd.h>

namespace score::node {

namespace {

constexpr int kLentPriority = 1;  // the lowest of SCHED_FIFO: below the switcher's thread

}  // namespace

PriorityLoan::PriorityLoan() : borrower_(gettid()) {}

bool PriorityLoan::renew(TimePoint now, Duration time) noexcept {
  due_.store((now + time).time_since_epoch().count(), std::memory_order_relaxed);
  if (!is_lent_.exchange(false, std::memory_order_acquire)) return false;
  const sched_param ordinary{};
  sched_setscheduler(borrower_, SCHED_OTHER, &ordinary);
  return true;
}

// The flag is set last. A borrower that renews in between keeps the priority until its next turn
// and gives it back then.
void PriorityLoan::lend(TimePoint now) noexcept {
  Duration::rep due = due_.load(std::memory_order_relaxed);
  if (due > now.time_since_epoch().count()) return;
  if (!due_.compare_exchange_strong(due, kNever, std::memory_order_relaxed)) return;
  const sched_param lent{.sched_priority = kLentPriority};
  if (sched_setscheduler(borrower_, SCHED_FIFO, &lent) != 0) return;
  is_lent_.store(true, std::memory_order_release);
}

}  // namespace score::node
