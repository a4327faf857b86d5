#pragma once
// What the head concludes about its nodes from the tree's heartbeats, for its failure detector.

#include "gang/control/beat_listener.hpp"

namespace score::gang {

class TreeVerdicts {
 public:
  struct Findings {
    Positions alive;   // they, or members above them, have just been heard
    Positions silent;  // newly silent: not heard for BeatTiming::silent_after()
  };

  // `tree` must outlive it.
  TreeVerdicts(const Tree& tree, const BeatTiming& timing, TimePoint now);

  // As BeatListener::hear(); adds to the findings.
  std::optional<BeatListener::Reply> hear(Position from, const SubtreeSummary& summary,
                                          TimePoint now, Findings& findings);
  void advance(TimePoint now, Findings& findings);

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return listener_.next_deadline(); }

  [[nodiscard]] const SubtreeSummary& summary() const { return listener_.summary(); }

 private:
  const Tree& tree_;
  BeatListener listener_;
  Positions silent_;  // as found so far
};

}  // namespace score::gang
