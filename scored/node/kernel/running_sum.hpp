// A sum of intervals, the last of which may still be open. One thread writes it, others read it.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace score::node {

class RunningSum {
 public:
  // A repeated start has no effect. Thread: the writer's.
  void start(std::int64_t at) noexcept {
    if (is_open()) return;
    since_.store(at, std::memory_order_release);
  }

  // Returns the length of the interval; an interval that ends before it began has none. Thread: the
  // writer's.
  //
  // The interval is closed before it is added. A reader that sees the new sum then sees that the
  // interval has ended, so it never counts it twice.
  std::int64_t stop(std::int64_t at) noexcept {
    const auto since = since_.load(std::memory_order_relaxed);
    if (since == kNone) return 0;
    const std::int64_t more = at > since ? at - since : 0;
    since_.store(kNone, std::memory_order_relaxed);
    sum_.store(sum_.load(std::memory_order_relaxed) + more, std::memory_order_release);
    return more;
  }

  struct Reading {
    std::int64_t sum = 0;               // of the finished intervals
    std::optional<std::int64_t> since;  // start of the open one
  };

  // May miss the interval that ends at this very moment. Thread: any.
  [[nodiscard]] Reading read() const noexcept {
    const auto since = since_.load(std::memory_order_acquire);
    const auto sum = sum_.load(std::memory_order_acquire);
    const auto again = since_.load(std::memory_order_relaxed);
    if (since == kNone || again != since) return {sum, std::nullopt};
    return {sum, since};
  }

  [[nodiscard]] std::int64_t finished() const noexcept {
    return sum_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] bool is_open() const noexcept {
    return since_.load(std::memory_order_relaxed) != kNone;
  }

 private:
  static constexpr std::int64_t kNone = INT64_MIN;

  std::atomic<std::int64_t> sum_{0};
  std::atomic<std::int64_t> since_{kNone};
};

}  // namespace score::node
