// Reads the time of polling that the owners of an attempt's PM contexts record there: how much
// processor time went into polling in vain and resting, and whether all of them rest. An attempt
// that does nothing else needs no slices.
//
// The owners can write any value. So the time is believed only up to what ranks that rest need:
// kShare of the time that the attempt runs, and kBurst per context at the beginning. If all
// contexts wait, and some say that they poll in vain all the time (pmlib/core/vain_polls.hpp), all
// of it is believed. Such an attempt must get little of the processor while others want it.
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
  // These values are chosen; see docs/lab/polling-and-resting.md.
  static constexpr double kShare = 0.04;
  static constexpr Duration kBurst = std::chrono::milliseconds{10};

  // Sets the contexts; further calls are ignored. Thread: the main one.
  void set_contexts(std::shared_ptr<const ContextSet> contexts) {
    if (contexts_ != nullptr || contexts == nullptr || contexts->empty()) return;
    contexts_ = std::move(contexts);
    shown_.store(contexts_.get(), std::memory_order_release);
  }

  struct Reading {
    Duration used{0};  // all time that has been believed so far
    bool rests = false;
    bool polls = false;  // it rests, and contexts poll in vain all the time
  };

  // ---- For the switcher's thread: one system call per context, no allocation.
  //  `ran`: the attempt's own time since the last call.
  Reading read(Duration ran) noexcept;
  // The time that was polled since the last read() will never be believed.
  void forget() noexcept;
  // Returns the whole time that the first context claims.
  [[nodiscard]] Duration of_first() const noexcept;

 private:
  std::shared_ptr<const ContextSet> contexts_;
  std::atomic<const ContextSet*> shown_{nullptr};
  std::uint64_t said_us_ = 0;  // sum over all contexts at the last reading, modulo 2^64
  Duration believed_{0};
  Duration credit_{0};  // may be believed at the next reading
};

}  // namespace score::node
