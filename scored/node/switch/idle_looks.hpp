// When the attempts are checked for being idle, between boundaries and at their end; what the
// checks decide is idle_watch.hpp's. Thread: the switcher's.
#pragma once

#include "scored/node/switch/switch_program.hpp"

#include <optional>
#include <span>
#include <utility>

namespace score::node {

class IdleLooks {
 public:
  using Entries = std::span<const std::shared_ptr<SwitchEntry>>;

  // At a switch, before anything is stopped.
  void assign_background(const SwitchProgram::Part* part, Entries entries, TimePoint woke);
  // After a switch, so that it waits for nothing of this.
  void watch(Entries entries, TimePoint woke, TimePoint stopped);
  // The fast path of watch() and next look: only these two changed, and no attempt is in the
  // background. Null: none. Returns when look() is due.
  std::optional<TimePoint> watch_turn(SwitchEntry* leaves, SwitchEntry* enters, TimePoint woke,
                                      TimePoint stopped);
  // Makes the checks that are due. Returns when it must be called again.
  std::optional<TimePoint> look(Entries entries, TimePoint woke);

  // Some attempt's is_idle() has changed since the last call.
  [[nodiscard]] bool take_change() { return std::exchange(has_change_, false); }

 private:
  [[nodiscard]] std::optional<TimePoint> next_look(Entries entries) const;

  WatchPace pace_;
  bool has_change_ = false;
};

}  // namespace score::node
