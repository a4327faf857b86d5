// Does the work of the switcher's thread, without the thread: given a program and the time, it
// stops and continues the attempts according to the plan.
#pragma once

#include "scored/node/switch/barrier_meetings.hpp"
#include "scored/node/switch/channel_handover.hpp"
#include "scored/node/switch/entry_control.hpp"
#include "scored/node/switch/idle_checks.hpp"
#include "scored/node/switch/switch_fast.hpp"
#include "scored/node/switch/switch_program.hpp"

#include <optional>
#include <utility>

namespace score::node {

class SwitchFollower {
 public:
  SwitchFollower(SwitchClock clock, SwitchTrace& trace, SwitchCounters& counters)
      : clock_(clock), counters_(counters), control_(trace, counters) {}

  SwitchFollower(const SwitchFollower&) = delete;
  SwitchFollower& operator=(const SwitchFollower&) = delete;

  // See barrier_meetings.hpp.
  void use_barriers() { uses_barriers_ = true; }

  void set_meets(bool meets) { meetings_.set_meets(meets, program_); }

  [[nodiscard]] bool take_meeting_change() { return meetings_.take_change(); }

  // Follows `program`, which is not null, from the next step on. Returns the previous program, or
  // null. An entry that is in neither is left as it is.
  SwitchProgram* take(SwitchProgram* program);
  // Takes all actions that are due. Returns when it must be called again; nullopt: not before the
  // next take().
  std::optional<TimePoint> step();
  // Continues all attempts.
  void release();

  // Returns true if is_idle() of an attempt has changed since the last call.
  [[nodiscard]] bool take_activity_change() { return idle_checks_.take_change(); }

  [[nodiscard]] SwitchProgram* program() const { return program_; }

  // Is readable when step() may have something to do; < 0: there is none.
  [[nodiscard]] int meeting_fd() const {
    return program_ != nullptr && program_->meetings ? program_->meetings->fd() : -1;
  }

  [[nodiscard]] bool has_attempts() const {
    return program_ != nullptr && !program_->entries.empty();
  }

 private:
  std::optional<TimePoint> step_fast(TimePoint woke);
  std::optional<TimePoint> observe(std::optional<TimePoint> next);
  void follow(TimePoint woke);
  std::uint64_t apply(const SwitchPosition& where, TimePoint due, TimePoint woke);
  std::uint64_t stop_leaving(const SwitchPosition& where, TimePoint due, TimePoint woke,
                             SwitchRecord& record);
  std::uint64_t let_entering_go(const SwitchPosition& where, TimePoint stopped,
                                SwitchRecord& record);
  std::uint64_t let_fill(const SwitchPosition& where, SwitchRecord& record);
  void account(const SwitchRecord& record, TimePoint woke, TimePoint stopped);

  SwitchClock clock_;
  SwitchCounters& counters_;
  EntryControl control_;
  IdleChecks idle_checks_;
  FastSwitch fast_{clock_, control_, counters_};
  BarrierMeetings meetings_{clock_, control_, counters_};
  ChannelHandover handover_{clock_, counters_.channels};
  SwitchProgram* program_ = nullptr;
  bool is_fresh_ = false;             // taken, not yet applied
  bool is_due_ = false;               // the position that is being applied was awaited
  std::optional<TimePoint> awaited_;  // the next boundary
  bool uses_barriers_ = false;
};

}  // namespace score::node
