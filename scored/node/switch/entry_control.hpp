// Stops and continues attempts, keeps their clocks, and records what a switch did. Thread: the
// switcher's.
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
  // Its clock starts at `at`; its network hears how long it was stopped until `now`. Gives 1 if it
  // could not be continued.
  std::uint64_t let_go(SwitchEntry& entry, ChannelUser* network, TimePoint at, TimePoint now);
  void note(const SwitchRecord& record);

 private:
  Duration late_after_;
  SwitchTrace& trace_;
  SwitchCounters& counters_;
  bool has_switched_ = false;
};

}  // namespace score::node
