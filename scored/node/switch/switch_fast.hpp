// Implements the fast path of a switch: one attempt that has the node to itself follows another
// one, in the same order in every cycle. The attempt that enters and the time are then known
// beforehand, and only these two attempts are touched.
//
// It skips the search for the position in the plan, the rows of all other attempts, the network
// (the entering attempt must hold its channel already), the background and filling (the entering
// attempt must leave no time). SwitchFollower makes the switches that do not fit, and has the same
// effect for these two attempts. SwitchFollower.FastPathMatchesGeneralPath compares both.
#pragma once

#include "scored/node/switch/entry_control.hpp"
#include "scored/node/switch/switch_program.hpp"

namespace score::node {

class FastSwitch {
 public:
  FastSwitch(const SwitchClock& clock, EntryControl& control, SwitchCounters& counters)
      : clock_(clock), control_(control), counters_(counters) {}

  // No turn fits until expect() is called again.
  void cancel() { next_.part = nullptr; }

  // `part`, of `program` and not null, has just been applied for `now`. Returns the next boundary
  // at which an attempt changes; nullopt if it is not one for the fast path.
  std::optional<TimePoint> expect(const SwitchProgram& program, const SwitchProgram::Part& part,
                                  TimePoint now);
  // Must be called after a turn was taken; returns the boundary after it.
  TimePoint expect_following();

  // Returns true if the expected turn is due, and both attempts are in the state in which the last
  // switch should have left them.
  [[nodiscard]] bool fits(TimePoint woke) const;

  struct Taken {
    SwitchEntry* leaves = nullptr;  // null: no attempt
    SwitchEntry* enters = nullptr;
    TimePoint stopped{};
    std::uint64_t failed = 0;  // attempts that could not be stopped or continued
  };

  Taken take(TimePoint woke);

 private:
  struct NextTurn {
    const SwitchProgram::Part* part = nullptr;  // null: none fits
    std::size_t turn = 0;                       // index in the part; the one that enters
    TimePoint due, until;                       // `until` is the boundary after `due`
    TimePoint ends;                             // start of a later part
  };

  const SwitchClock& clock_;
  EntryControl& control_;
  SwitchCounters& counters_;
  NextTurn next_;
};

}  // namespace score::node
