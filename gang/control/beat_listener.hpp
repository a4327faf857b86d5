#pragma once
// Receives heartbeats for one member. It hears its children, adopts the children of silent members,
// and sums up its subtree for its own parent. The head's listener sums up the whole tree.

#include "gang/control/beat_timing.hpp"
#include "gang/control/tree.hpp"

#include <map>
#include <optional>

namespace score::gang {

// Describes the members below one member. It does not include the member itself.
struct SubtreeSummary {
  Positions silent;   // not heard for too long
  Positions unknown;  // not heard yet since this roster began

  friend bool operator==(const SubtreeSummary&, const SubtreeSummary&) = default;
};

class BeatListener {
 public:
  // All members below are unknown at first. `tree` must outlive the listener.
  BeatListener(const Tree& tree, Position self, const BeatTiming& timing, TimePoint now);

  struct Reply {
    std::optional<Position> go_back;  // for BeatSender::answered
  };

  // Takes a beat of any member below this one. Returns nullopt if `from` is no such member; it gets
  // no answer then. A summary counts only for the members below `from`.
  std::optional<Reply> hear(Position from, const SubtreeSummary& summary, TimePoint now);

  // Returns the members that are alive according to the last hear() of `from`, including `from`
  // itself.
  [[nodiscard]] Positions heard_through(Position from) const;

  // Updates summary() from what was heard and from the time. Returns true if summary() has changed
  // since the last call.
  bool advance(TimePoint now);
  // Returns the time at which silence may change the summary; it may be too early.
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  [[nodiscard]] const SubtreeSummary& summary() const { return summary_; }

  // Returns the number of members that currently beat directly to this one.
  [[nodiscard]] std::size_t speakers() const { return speakers_.size(); }

 private:
  struct Speaker {
    TimePoint heard{};
    SubtreeSummary summary;
  };

  // Adds the state of `position`, for which no other speaker answers, and of the members below it
  // to `sum`. If it never spoke, it is silent from `lapses` on.
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
  bool is_stale_ = true;  // summary_ lacks something that was heard
  std::optional<TimePoint> next_;
};

}  // namespace score::gang
