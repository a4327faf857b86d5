// Counts events of the switcher's thread; any thread may read the counters.
#pragma once

#include "scored/node/channel/channel_user.hpp"
#include "scored/node/kernel/run_clock.hpp"

#include <atomic>
#include <cstdint>

namespace score::node {

struct SwitchCounters {
  std::atomic<std::uint64_t> switches{0};
  std::atomic<std::uint64_t> late{0};    // begun later than SwitcherOptions::late_after
  std::atomic<std::uint64_t> failed{0};  // a stop() or go() returned an error
  // Sums the times from the boundaries until the entering jobs continue, which the jobs lose by
  // switching.
  std::atomic<Duration::rep> lost_ns{0};
  RunClock busy;  // at least one attempt runs
  // Counts attempts in barrier mode that entered without having met, or not at all, and so lost a
  // slice.
  std::atomic<std::uint64_t> unmet{0};
  ChannelCounters channels;
};

// Adds to a counter that only the caller writes: an atomic addition would wait for all earlier
// writes.
template <class T>
void count(std::atomic<T>& counter, T more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace score::node
