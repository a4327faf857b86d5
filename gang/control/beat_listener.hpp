#pragma once
// Heartbeats of one member, the receiving side: it hears its children, adopts the children of those
// that are silent, and sums up its subtree for its own parent. The head's listener sums up all.

#include "gang/control/beat_timing.hpp"
#include "gang/control/tree.hpp"

#include <map>
#include <optional>

namespace score::gang {

// What a member says of those below it; itself is not in it.
struct SubtreeSummary {
  Positions silent;   // not heard for too long
  Positions unknown;  // not heard yet, in this roster

  friend bool operator==(const SubtreeSummary&, const SubtreeSummary&) = default;
};

class BeatListener {
 public:
  // All members below are unknown. `tree` must outlive it.
  BeatListener(const Tree& tree, Position self, const BeatTiming& timing, TimePoint now);

  struct Reply {
    std::optional<Position> go_back;  // for BeatSender::answered
  };

  // A beat of any member below this one; nullopt: it is no such member, and gets no answer. What it
  // says of others than those below it is ignored.
  std::optional<Reply> hear(Position from, const SubtreeSummary& summary, TimePoint now);

  // After hear() of `from`: the members that are alive by its word, itself included.
  [[nodiscard]] Positions heard_through(Position from) const;

  // Draws conclusions from what was heard, and from the time. True: summary() has changed since the
  // last call.
  bool advance(TimePoint now);
  // When silence may change the summary, or earlier.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  [[nodiscard]] const SubtreeSummary& summary() const { return summary_; }

  // Members that beat directly to this one, at present.
  [[nodiscard]] std::size_t speakers() const { return speakers_.size(); }

 private:
  struct Speaker {
    TimePoint heard{};
    SubtreeSummary summary;
  };

  // Adds the state of `position`, which no other speaker answers for, and of those below it. If it
  // never spoke it is silent from `lapses` on.
  void judge(Position position, TimePoint lapses, TimePoint now, SubtreeSummary& sum);
  void judge_below(Position position, TimePoint lapses, TimePoint now, SubtreeSummary& sum);
  void apply_adopted(TimePoint now, SubtreeSummary& sum) const;
  void forget_adopted(TimePoint now);
  [[nodiscard]] const Speaker* fresh(Position position, TimePoint now) const;
  void note_deadline(TimePoint at);

  const Tree& tree_;
  Position self_;
  BeatTiming timing_;
  TimePoint begun_;
  PositionRange below_;
  std::map<Position, Speaker> speakers_;
  SubtreeSummary summary_;
  bool is_stale_ = true;  // summary_ does not contain what was heard
  std::optional<TimePoint> next_;
};

}  // namespace score::gang
