// Measures how long an attempt has run. The switcher's thread writes it, and the main one reads it.
#pragma once

#include "base/time.hpp"

#include <atomic>

namespace score::node {

class RunClock {
 public:
  // A repeated start or stop has no effect. Thread: the writer's.
  void start(TimePoint at) noexcept {
    if (since_.load(std::memory_order_relaxed) != 0) return;
    since_.store(at.time_since_epoch().count(), std::memory_order_release);
  }

  void stop(TimePoint at) noexcept {
    const auto since = since_.load(std::memory_order_relaxed);
    if (since == 0) return;
    const auto ran = at.time_since_epoch().count() - since;
    ran_.store(ran_.load(std::memory_order_relaxed) + (ran > 0 ? ran : 0),
               std::memory_order_relaxed);
    since_.store(0, std::memory_order_release);
  }

  // May miss a stop of this very moment, but never counts a time twice. Thread: any.
  [[nodiscard]] Duration read(TimePoint now) const noexcept {
    const auto since = since_.load(std::memory_order_acquire);
    const auto ran = ran_.load(std::memory_order_acquire);
    const auto again = since_.load(std::memory_order_relaxed);
    if (since == 0 || again != since) return Duration(ran);
    const auto open = now.time_since_epoch().count() - since;
    return Duration(ran + (open > 0 ? open : 0));
  }

  [[nodiscard]] bool is_running() const noexcept {
    return since_.load(std::memory_order_relaxed) != 0;
  }

 private:
  std::atomic<Duration::rep> ran_{0};    // sum of the finished runs
  std::atomic<Duration::rep> since_{0};  // start of the current run; 0: none
};

}  // namespace score::node
