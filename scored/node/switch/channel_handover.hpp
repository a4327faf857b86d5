// Gives the channels of the network to the attempts that enter, and waits while the channels rest
// between two attempts. Thread: the switcher's.
#pragma once

#include "scored/node/switch/entry_control.hpp"
#include "scored/node/switch/switch_program.hpp"

namespace score::node {

class ChannelHandover {
 public:
  // The longest time that a node waits, after the guard, for other nodes to restore.
  static constexpr Duration kMostRestore = std::chrono::microseconds{400};

  ChannelHandover(const SwitchClock& clock, ChannelCounters& counters)
      : clock_(clock), counters_(counters) {}

  // Gives channels to the attempts that run from now on: those that enter, and those that opened
  // their network while they run. Without a plan everything runs and no channel changes hands.
  // Fills in the times of the record.
  void hand_over(const SwitchProgram& program, const SwitchPosition& where, SwitchRecord& record);

 private:
  void restore_together(const SwitchRecord& record, Duration guard);

  const SwitchClock& clock_;
  ChannelCounters& counters_;
  Duration restore_time_ = kMostRestore;  // after the guard; recent duration of restoring
};

}  // namespace score::node
