// What the PM contexts of an attempt say of their owners: how much processor time went into polling
// in vain and resting, and whether all of them rest. An attempt that does nothing else needs no
// slices.
//
// The owners write there what they like. So the time is believed only up to what ranks that rest
// need: kShare of the time that the attempt runs, and kBurst per context when they begin.
#pragma once

#include "base/time.hpp"
#include "scored/node/channel/job_contexts.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace score::node {

class PolledTime {
 public:
  // Chosen; see docs/lab/polling-and-resting.md.
  static constexpr double kShare = 0.04;
  static constexpr Duration kBurst = std::chrono::milliseconds{10};

  // Once; further calls are ignored. Thread: the main one.
  void set_contexts(std::shared_ptr<const ContextSet> contexts) {
    if (contexts_ != nullptr || contexts == nullptr || contexts->empty()) return;
    contexts_ = std::move(contexts);
    shown_.store(contexts_.get(), std::memory_order_release);
  }

  struct Reading {
    Duration used{0};  // all that is believed so far
    bool rests = false;
  };

  // ---- the switcher's thread: a system call per context, no allocation
  // `ran`: of the attempt's own time, since the last call.
  Reading read(Duration ran) noexcept;
  // What was polled since the last call of read() is never believed.
  void forget() noexcept;
  // All that the first context says.
  [[nodiscard]] Duration of_first() const noexcept;

 private:
  std::shared_ptr<const ContextSet> contexts_;
  std::atomic<const ContextSet*> shown_{nullptr};
  std::uint64_t said_us_ = 0;  // by all contexts when they were read last, modulo 2^64
  Duration believed_{0};
  Duration credit_{0};  // that may be believed next
};

}  // namespace score::node
