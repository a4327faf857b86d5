// A silent member can no longer report for the members below it. They need up to a period to
// notice, and then speak to a different member. So at that moment they count as alive once more. If
// they do not come, BeatListener reports them silent later.
#include "gang/control/tree_verdicts.hpp"

namespace score::gang {

namespace {

void remove(Positions& from, const Positions& some) {
  for (const PositionRange& range : some.ranges()) from.remove(range);
}

}  // namespace

TreeVerdicts::TreeVerdicts(const Tree& tree, const BeatTiming& timing, TimePoint now)
    : tree_(tree), listener_(tree, 0, timing, now) {}

std::optional<BeatListener::Reply> TreeVerdicts::hear(Position from, const SubtreeSummary& summary,
                                                      TimePoint now, Findings& findings) {
  auto reply = listener_.hear(from, summary, now);
  if (reply) findings.alive.add(listener_.heard_through(from));
  advance(now, findings);
  return reply;
}

void TreeVerdicts::advance(TimePoint now, Findings& findings) {
  if (!listener_.advance(now)) return;
  Positions fresh = listener_.summary().silent;
  remove(fresh, silent_);
  silent_ = listener_.summary().silent;
  Positions voiceless;
  for (const PositionRange& range : fresh.ranges()) {
    for (Position p = range.begin; p < range.end; ++p) voiceless.add(tree_.subtree(p));
  }
  findings.alive.add(voiceless);
  remove(findings.alive, listener_.summary().silent);
  remove(findings.alive, listener_.summary().unknown);
  findings.silent.add(fresh);
}

}  // namespace score::gang
