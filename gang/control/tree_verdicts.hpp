#pragma once
// TreeVerdicts decides from the tree's heartbeats which nodes the head's failure detector hears of
// as alive or silent.

#include "gang/control/beat_listener.hpp"

namespace score::gang {

class TreeVerdicts {
 public:
  struct Findings {
    Positions alive;   // they, or members above them, have just been heard
    Positions silent;  // newly silent: not heard for BeatTiming::silent_after()
  };

  // `tree` must outlive the object.
  TreeVerdicts(const Tree& tree, const BeatTiming& timing, TimePoint now);

  // Works like BeatListener::hear() and adds to the findings.
  std::optional<BeatListener::Reply> hear(Position from, const SubtreeSummary& summary,
                                          TimePoint now, Findings& findings);
  void advance(TimePoint now, Findings& findings);

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return listener_.next_deadline(); }

  [[nodiscard]] const SubtreeSummary& summary() const { return listener_.summary(); }

 private:
  const Tree& tree_;
  BeatListener listener_;
  Positions silent_;  // reported so far
};

}  // namespace score::gang
