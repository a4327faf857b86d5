// What the switcher's thread counts; any thread reads it.
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
  // From the boundaries until the entering jobs go on: the time that switching took from them.
  std::atomic<Duration::rep> lost_ns{0};
  RunClock busy;  // at least one attempt runs
  // Barrier mode: attempts that entered without having met, or not at all: a slice was lost.
  std::atomic<std::uint64_t> unmet{0};
  ChannelCounters channels;
};

// For counters that only the caller writes: an atomic addition would wait for all earlier writes.
template <class T>
void count(std::atomic<T>& counter, T more) {
  counter.store(counter.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

}  // namespace score::node
