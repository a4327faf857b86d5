// Stops and continues attempts, changes their priority, keeps their clocks, and records what a
// switch did. Thread: the switcher's.
#pragma once

#include "scored/node/switch/switch_counters.hpp"
#include "scored/node/switch/switch_entry.hpp"
#include "scored/node/switch/switch_trace.hpp"

#include <atomic>

namespace score::node {

// Time, and what may be waited for, as the switch sees them.
struct SwitchClock {
  TimePoint (*now)();
  void (*sleep_until)(TimePoint);
  // How long a channel rests between two attempts: until no node sends for the first one any more,
  // and all frames in flight have arrived.
  const std::atomic<Duration::rep>& guard_ns;
};

class EntryControl {
 public:
  EntryControl(Duration late_after, SwitchTrace& trace, SwitchCounters& counters)
      : late_after_(late_after), trace_(trace), counters_(counters) {}

  // A switch begins: so far it has stopped and continued nothing.
  void begin() { has_switched_ = false; }

  // Its clock stops at `at`. Gives 1 if it could not be stopped.
  std::uint64_t stop(SwitchEntry& entry, TimePoint at);
  // Its turn is over and it fills from now on; it is stopped if it cannot. Gives 1 then, more if it
  // could not be stopped either.
  std::uint64_t lower(SwitchEntry& entry, TimePoint at);
  // It was stopped, and fills from now on. Gives 1 if it cannot.
  std::uint64_t let_fill(SwitchEntry& entry, ChannelUser* network, TimePoint now);
  // Its clock starts at `at`; if it was stopped, its network hears how long it was stopped until
  // `now`. Gives 1 if it could not be continued at normal priority.
  std::uint64_t let_go(SwitchEntry& entry, ChannelUser* network, TimePoint at, TimePoint now);
  void note(const SwitchRecord& record);

 private:
  Duration late_after_;
  SwitchTrace& trace_;
  SwitchCounters& counters_;
  bool has_switched_ = false;
};

}  // namespace score::node
