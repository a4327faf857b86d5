// Gives the channels of the network to the attempts that enter, and waits while they rest between
// two attempts. Thread: the switcher's.
#pragma once

#include "scored/node/switch/entry_control.hpp"
#include "scored/node/switch/switch_program.hpp"

namespace score::node {

class ChannelHandover {
 public:
  // No node waits longer for others to have restored, after the guard.
  static constexpr Duration kMostRestore = std::chrono::microseconds{400};

  ChannelHandover(const SwitchClock& clock, ChannelCounters& counters)
      : clock_(clock), counters_(counters) {}

  // Channels go to the attempts that run from now on: those that enter, and those that opened their
  // network while they run. Under no plan everything runs and no channel changes hands. Fills in
  // the times of the record.
  void hand_over(const SwitchProgram& program, const SwitchPosition& where, SwitchRecord& record);

 private:
  void restore_together(const SwitchRecord& record, Duration guard);

  const SwitchClock& clock_;
  ChannelCounters& counters_;
  Duration restore_time_ = kMostRestore;  // after the guard; what it took lately
};

}  // namespace score::node
