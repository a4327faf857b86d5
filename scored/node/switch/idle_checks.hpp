// Decides when the attempts are checked for being idle, at boundaries and in between.
// idle_watch.hpp evaluates the checks. Thread: the switcher's.
#pragma once

#include "scored/node/switch/switch_program.hpp"

#include <optional>
#include <span>
#include <utility>

namespace score::node {

class IdleChecks {
 public:
  using Entries = std::span<const std::shared_ptr<SwitchEntry>>;

  // Must be called at a switch, before anything is stopped.
  void assign_background(const SwitchProgram::Part* part, Entries entries, TimePoint woke);
  // Must be called after a switch, so that the switch does not wait for it.
  void watch(Entries entries, TimePoint woke, TimePoint stopped);
  // Is the fast path of watch() and the next check: only these two changed (null: none), and no
  // attempt is in the background. Returns when check() is due.
  std::optional<TimePoint> watch_turn(SwitchEntry* leaves, SwitchEntry* enters, TimePoint woke,
                                      TimePoint stopped);
  // Makes the checks that are due. Returns when it must be called again.
  std::optional<TimePoint> check(Entries entries, TimePoint woke);

  // Returns true if is_idle() of an attempt has changed since the last call.
  [[nodiscard]] bool take_change() { return std::exchange(has_change_, false); }

 private:
  [[nodiscard]] std::optional<TimePoint> next_check(Entries entries) const;

  WatchPace pace_;
  bool has_change_ = false;
};

}  // namespace score::node
