// A position has one reporter: its nearest ancestor-or-self that currently speaks to this member.
// The reporter's summary counts for its whole subtree, except for the subtrees of members that
// speak to this member themselves.
//
// When a child falls silent, its own state is certain, but the state of the members below it is
// not: they notice only at their next beat. Until then (adopt_after) the child's last summary of
// them holds. A member that has not spoken by then is silent too.
#include "gang/control/beat_listener.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

namespace {

PositionRange below(PositionRange subtree) {
  return {subtree.begin + 1, subtree.end};
}

void add_clipped(SubtreeSummary& sum, const SubtreeSummary& part, PositionRange range) {
  const auto add = [&](Positions& to, Positions from) {
    from.clip(range);
    to.add(from);
  };
  add(sum.silent, part.silent);
  add(sum.unknown, part.unknown);
}

}  // namespace

BeatListener::BeatListener(const Tree& tree, Position self, const BeatTiming& timing, TimePoint now)
    : tree_(tree), self_(self), timing_(timing), begun_(now), below_(below(tree.subtree(self))) {
  advance(now);
}

const BeatListener::Speaker* BeatListener::fresh(Position position, TimePoint now) const {
  const auto found = speakers_.find(position);
  if (found == speakers_.end()) return nullptr;
  return now < found->second.heard + timing_.silent_after() ? &found->second : nullptr;
}

std::optional<BeatListener::Reply> BeatListener::hear(Position from, const SubtreeSummary& summary,
                                                      TimePoint now) {
  if (!below_.contains(from)) return std::nullopt;
  const bool was_fresh = fresh(from, now) != nullptr;
  Speaker& speaker = speakers_[from];
  if (!was_fresh || speaker.summary != summary) is_stale_ = true;
  speaker = {now, summary};
  Reply reply;
  for (const Position ancestor : tree_.ancestors(from)) {
    if (ancestor == self_) break;
    if (fresh(ancestor, now) == nullptr) continue;
    reply.go_back = ancestor;
    break;
  }
  return reply;
}

Positions BeatListener::heard_through(Position from) const {
  Positions heard;
  const auto found = speakers_.find(from);
  if (found == speakers_.end()) return heard;
  heard.add(tree_.subtree(from));
  for (const auto* others : {&found->second.summary.silent, &found->second.summary.unknown}) {
    for (PositionRange range : others->ranges()) {
      if (range.contains(from)) range.begin = from + 1;
      heard.remove(range);
    }
  }
  return heard;
}

void BeatListener::note_deadline(TimePoint at) {
  next_ = std::min(next_.value_or(at), at);
}

void BeatListener::judge(Position position, TimePoint lapses, TimePoint now, SubtreeSummary& sum) {
  const PositionRange others = below(tree_.subtree(position));
  if (const Speaker* const speaker = fresh(position, now)) {
    note_deadline(speaker->heard + timing_.silent_after());
    add_clipped(sum, speaker->summary, others);
    return;
  }
  const auto found = speakers_.find(position);
  if (found != speakers_.end()) {
    sum.silent.add({position, position + 1});
    const TimePoint end = found->second.heard + timing_.adopt_after();
    if (now >= end) return judge_below(position, end, now, sum);
    note_deadline(end);
    return add_clipped(sum, found->second.summary, others);
  }
  if (now < lapses) {
    note_deadline(lapses);
    return sum.unknown.add({position, others.end});
  }
  sum.silent.add({position, position + 1});
  const TimePoint end = std::max(lapses, begun_ + timing_.adopt_after());
  if (now >= end) return judge_below(position, end, now, sum);
  note_deadline(end);
  sum.unknown.add(others);
}

void BeatListener::judge_below(Position position, TimePoint lapses, TimePoint now,
                               SubtreeSummary& sum) {
  for (const Position child : tree_.children(position)) judge(child, lapses, now, sum);
}

// The loop visits the members in preorder: a member comes before those below it, so the nearest
// member's summary is applied last.
void BeatListener::apply_adopted(TimePoint now, SubtreeSummary& sum) const {
  for (const auto& [position, speaker] : speakers_) {
    if (now >= speaker.heard + timing_.silent_after()) continue;
    const PositionRange subtree = tree_.subtree(position);
    sum.silent.remove(subtree);
    sum.unknown.remove(subtree);
    add_clipped(sum, speaker.summary, below(subtree));
  }
}

// Runs before judge(): it drops what a member reported before its parent's last summary.
void BeatListener::forget_adopted(TimePoint now) {
  std::erase_if(speakers_, [&](const auto& entry) {
    return now >= entry.second.heard + timing_.adopt_after() && tree_.parent(entry.first) != self_;
  });
}

bool BeatListener::advance(TimePoint now) {
  if (!is_stale_ && (!next_ || now < *next_)) return false;
  is_stale_ = false;
  next_.reset();
  forget_adopted(now);
  SubtreeSummary sum;
  judge_below(self_, begun_ + timing_.silent_after(), now, sum);
  apply_adopted(now, sum);
  for (const auto& [position, speaker] : speakers_) {
    const TimePoint end = speaker.heard + timing_.silent_after();
    if (now < end) note_deadline(end);
  }
  return std::exchange(summary_, std::move(sum)) != summary_;
}

std::optional<TimePoint> BeatListener::next_deadline() const {
  return next_;
}

}  // namespace score::gang
