#include "scored/node/switch/idle_checks.hpp"

namespace score::node {

namespace {

// An idle attempt in the background is held for a while after it has used the processor.
void obey_watch(SwitchEntry& entry, TimePoint now) {
  const bool must_stop = entry.watch.is_held();
  if (!entry.watch.is_background() || entry.is_stopped() == must_stop) return;
  if (must_stop) {
    entry.clock.stop(now);
    if (entry.target->stop() == 0) {
      entry.role = Role::Stopped;
    } else {
      entry.clock.start(now);
    }
    entry.stopped_at = now;
    return;
  }
  if (entry.target->go() == 0) {
    entry.role = Role::Runs;
    entry.clock.start(now);
  }
  entry.watch.goes_on(now);
}

}  // namespace

[[gnu::hot]] void IdleChecks::assign_background(const SwitchProgram::Part* part, Entries entries,
                                                TimePoint woke) {
  pace_ = part != nullptr ? part->pace : WatchPace{};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    IdleWatch& watch = entries[i]->watch;
    const bool was_idle = watch.is_idle();
    watch.set_background(part != nullptr && part->background[i] != 0, woke);
    has_change_ |= was_idle != watch.is_idle();
  }
}

[[gnu::hot]] void IdleChecks::watch(Entries entries, TimePoint woke, TimePoint stopped) {
  for (const auto& entry : entries) {
    const bool was_idle = entry->watch.is_idle();
    if (entry->role == Role::Runs) {
      entry->watch.goes_on(stopped);
    } else {
      entry->watch.stops(woke, pace_);
    }
    has_change_ |= was_idle != entry->watch.is_idle();
  }
}

[[gnu::hot]] std::optional<TimePoint> IdleChecks::watch_turn(SwitchEntry* leaves,
                                                             SwitchEntry* enters, TimePoint woke,
                                                             TimePoint stopped) {
  if (leaves != nullptr) {
    const bool was_idle = leaves->watch.is_idle();
    leaves->watch.stops(woke, pace_);
    has_change_ |= was_idle != leaves->watch.is_idle();
  }
  if (enters == nullptr) return std::nullopt;
  enters->watch.goes_on(stopped);
  return enters->watch.next_check(pace_);
}

[[gnu::hot]] std::optional<TimePoint> IdleChecks::next_check(Entries entries) const {
  std::optional<TimePoint> next;
  for (const auto& entry : entries) {
    const auto due = entry->watch.next_check(pace_);
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

// Checks attempts in the background together, with one wake-up for all of them.
[[gnu::hot]] std::optional<TimePoint> IdleChecks::check(Entries entries, TimePoint woke) {
  const auto next = next_check(entries);
  if (!next || *next > woke) return next;
  for (const auto& entry : entries) {
    const bool joins = entry->watch.is_background() && !entry->watch.is_held();
    const auto due = entry->watch.next_check(pace_);
    if (!due || *due > woke + (joins ? pace_.background / 2 : Duration{0})) continue;
    const bool was_idle = entry->watch.is_idle();
    entry->watch.check(woke, pace_);
    obey_watch(*entry, woke);
    has_change_ |= was_idle != entry->watch.is_idle();
  }
  return next_check(entries);
}

}  // namespace score::node
