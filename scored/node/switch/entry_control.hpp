// Stops and continues attempts, changes their priority, keeps their clocks, and records the actions
// of a switch. Thread: the switcher's.
#pragma once

#include "scored/node/switch/switch_counters.hpp"
#include "scored/node/switch/switch_entry.hpp"
#include "scored/node/switch/switch_trace.hpp"

#include <atomic>

namespace score::node {

// Gives the switch the time, and a way to wait.
struct SwitchClock {
  TimePoint (*now)();
  void (*sleep_until)(TimePoint);
  // The time that a channel rests between two attempts: until no node sends for the first one any
  // more, and all frames in flight have arrived.
  const std::atomic<Duration::rep>& guard_ns;
};

class EntryControl {
 public:
  EntryControl(SwitchTrace& trace, SwitchCounters& counters) : trace_(trace), counters_(counters) {}

  // Begins a switch, which has not stopped or continued anything yet.
  void begin() { has_switched_ = false; }

  // Stops the attempt and, at `at`, its clock. Returns 1 if it could not be stopped.
  std::uint64_t stop(SwitchEntry& entry, TimePoint at);
  // Ends the attempt's turn, so that it fills from now on; stops it if it cannot fill. Returns 1 in
  // that case, and more if it could not be stopped either.
  std::uint64_t lower(SwitchEntry& entry, TimePoint at);
  // Lets a stopped attempt fill from now on. Returns 1 if it cannot.
  std::uint64_t let_fill(SwitchEntry& entry, ChannelUser* network, TimePoint now);
  // Continues the attempt and starts its clock at `at`. If it was stopped, its network publishes
  // for how long, until `now`. Returns 1 if it could not be continued at normal priority.
  std::uint64_t resume(SwitchEntry& entry, ChannelUser* network, TimePoint at, TimePoint now);
  void note(const SwitchRecord& record);

 private:
  SwitchTrace& trace_;
  SwitchCounters& counters_;
  bool has_switched_ = false;
};

}  // namespace score::node
