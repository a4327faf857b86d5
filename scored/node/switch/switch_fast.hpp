// The fast path of a switch: one attempt follows another that has the node to itself, in the same
// order cycle after cycle. Then the attempt that enters, and when, is known beforehand, and only
// these two are touched.
//
// It skips the search for the position in the plan, the rows of all other attempts, the network
// (the entering attempt must hold its channel already), the background and filling (the entering
// attempt must leave no time). A turn that does not fit
// is not taken here but by SwitchFollower, which does the same for these two attempts;
// SwitchFollower.FastTurnsDoWhatAllSwitchesDo compares both.
#pragma once

#include "scored/node/switch/entry_control.hpp"
#include "scored/node/switch/switch_program.hpp"

namespace score::node {

class FastSwitch {
 public:
  FastSwitch(const SwitchClock& clock, EntryControl& control, SwitchCounters& counters)
      : clock_(clock), control_(control), counters_(counters) {}

  // Until expect() is called again no turn fits.
  void cancel() { next_.part = nullptr; }

  // `part`, of `program` and not null, has just been applied for `now`. Returns the next boundary
  // at which an attempt changes, nullopt: it is not one for the fast path.
  std::optional<TimePoint> expect(const SwitchProgram& program, const SwitchProgram::Part& part,
                                  TimePoint now);
  // After a turn was taken: the boundary after it.
  TimePoint expect_following();

  // The expected turn fits: it is time for it, and both attempts are as the last switch should have
  // left them.
  [[nodiscard]] bool fits(TimePoint woke) const;

  struct Taken {
    SwitchEntry* leaves = nullptr;  // null: no attempt
    SwitchEntry* enters = nullptr;
    TimePoint stopped{};
    std::uint64_t failed = 0;  // that could not be stopped or continued
  };

  Taken take(TimePoint woke);

 private:
  struct NextTurn {
    const SwitchProgram::Part* part = nullptr;  // null: none fits
    std::size_t turn = 0;                       // of the part: the one that enters
    TimePoint due, until;                       // until: the boundary after it
    TimePoint ends;                             // when a later part starts
  };

  const SwitchClock& clock_;
  EntryControl& control_;
  SwitchCounters& counters_;
  NextTurn next_;
};

}  // namespace score::node
