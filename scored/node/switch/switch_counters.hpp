// Counts events of the switcher's thread; any thread may read the counters.
#pragma once

#include "base/model/switch_overhead.hpp"
#include "scored/node/channel/channel_user.hpp"
#include "scored/node/kernel/run_clock.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace score::node {

struct SwitchCounters {
  std::atomic<std::uint64_t> switches{0};
  std::atomic<std::uint64_t> late{0};    // see is_late()
  std::atomic<std::uint64_t> failed{0};  // a stop() or go() returned an error
  // Sums the parts of the overhead, in the order of kOverheadParts.
  std::array<std::atomic<Duration::rep>, kOverheadParts.size()> overhead_ns{};
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

inline void count(SwitchCounters& counters, const SwitchOverhead& more) {
  for (std::size_t i = 0; i < kOverheadParts.size(); ++i) {
    count(counters.overhead_ns[i], (more.*kOverheadParts[i].part).count());
  }
}

// Thread: any.
inline SwitchOverhead overhead_in(const SwitchCounters& counters) {
  SwitchOverhead overhead;
  for (std::size_t i = 0; i < kOverheadParts.size(); ++i) {
    overhead.*kOverheadParts[i].part =
        Duration(counters.overhead_ns[i].load(std::memory_order_relaxed));
  }
  return overhead;
}

}  // namespace score::node
