#pragma once
// IdleJudge decides when one attempt is checked for being idle, what must be read for it, and what
// the readings mean. idle_state.hpp has its states.
//
// An idle attempt in the background runs together with the gang that has its turn, and costs
// nothing as long as it does nothing. If it needs the processor, it is held after the next check.
// It is then continued for short times until a timetable has it again, so that an absent head does
// not stop an attempt forever.
//
// An idle attempt whose tasks poll in vain would use a processor all the time. In the background it
// is held, too, and continued for kGlimpse at a time so that its tasks see whether their wait is
// over; it stays idle meanwhile.
//
// A check reads as little as possible: the time of one task, the leader, first; all tasks only if
// the leader's time does not show that all goes on as before; their waiting only if they did not
// use all of their time.

#include "gang/node/fill_meter.hpp"
#include "gang/node/idle_meter.hpp"
#include "gang/node/idle_state.hpp"
#include "gang/node/watch_pace.hpp"

#include <optional>

namespace score::gang {

// IdleSuspicion decides whether an attempt should be checked again soon because it did not need the
// end of the time before the last check. If it only waits for other processes at times, the
// suspicion is wrong, and becomes less and less frequent.
class IdleSuspicion {
 public:
  // Records a check that found no use (is_quiet), use of all time (is_whole), or neither.
  void note(bool is_quiet, bool is_whole);

  void raise() { is_raised_ = true; }

  [[nodiscard]] bool is_raised() const { return is_raised_; }

 private:
  bool is_raised_ = false;
  int mistakes_ = 0;  // suspicions that found it busy; grows as 1, 3, 7, 15
  int spared_ = 0;    // suspicions that are still to be ignored
};

class IdleJudge {
 public:
  // `cores` is the number of cores that the attempt has been given.
  explicit IdleJudge(IdleRule rule = {}, std::uint32_t cores = 1)
      : meter_(rule), fill_meter_(cores) {}

  // Handles an event. Only Stop and Due use the pace. If the caller cannot read, it ignores the
  // action.
  IdleAction on(IdleEvent event, TimePoint now, const WatchPace& pace);

  // Takes the leader's processor time so far, without polling; < 0: unknown.
  IdleAction take_leader(Duration total);
  // Takes the processor time of all tasks so far (< 0: unknown), how much of that was polling, and
  // whether all tasks rest.
  IdleAction take_usage(Duration total, Duration polled, bool rests);

  // Records, before take_usage(), whether the tasks poll in vain all the time.
  void note_polls(bool polls) { polls_ = polls; }

  // Takes the time so far in which a task could have run but had to wait for a core.
  IdleAction take_waited(Duration total);

  // The attempt has used this much at idle priority since the last check. That time and the waiting
  // in it are not counted for its turns. `leader` and `waited` are as above. is_stopped: its turn
  // does not begin now.
  void skip(Duration used, Duration leader, Duration waited, bool is_stopped);

  // Returns when Due is due; nullopt: not before the next event.
  [[nodiscard]] std::optional<TimePoint> next_check(const WatchPace& pace) const;

  // Returns the attempt's own time since the last check.
  [[nodiscard]] Duration ran() const { return times_.ran; }

  [[nodiscard]] IdleState state() const { return state_; }

  [[nodiscard]] bool is_background() const {
    return state_ != IdleState::Stopped && state_ != IdleState::Turn;
  }

  [[nodiscard]] bool is_held() const { return state_ == IdleState::Held; }

  [[nodiscard]] bool is_idle() const { return meter_.is_idle(); }

  // Returns true if other attempts should fill its turns.
  [[nodiscard]] bool leaves_time() const { return fill_meter_.leaves_time(); }

  // Its turn begins, and other attempts fill it.
  void note_fillers() { fill_meter_.note_fillers(); }

 private:
  // Demand says how much processor time it wanted at the last check. Two of the values are crowded:
  // it used little because it had to wait for a processor.
  enum class Demand : std::uint8_t {
    Part,     // it needed part of its time, or none
    Whole,    // it used all of its time
    Shared,   // it used part of its time while it waited for a processor; crowded
    Starved,  // it wanted all of its time and did not get it; crowded
  };

  struct Times {
    TimePoint went_on{};  // its turn began
    TimePoint since{};    // the last check, or when it went on
    Duration ran{0};      // own time after the last check and before `since`
    TimePoint held_until{};
  };

  struct Leader {
    Duration used{0};    // when it was read
    Duration unread{0};  // the attempt's own time since then
    int trust = 0;       // slices in which the leader's time is enough
  };

  struct Waiting {
    Duration total{0};         // when it was read
    Duration unread{0};        // own time since then
    bool has_stopped = false;  // since then
  };

  // Check describes the check in progress, or the last one.
  struct Check {
    bool is_probe = false;
    bool is_repeated = false;  // there will be one more before the attempt is stopped again
    bool is_shared = false;    // as WatchPace::is_shared
    bool is_doubted = false;   // the leader has just used less than before
    Duration pause{0};         // until the next one in the background
    Duration least{0};         // of use: the leader's
    Duration used{0};
    Duration total{0};
  };

  [[nodiscard]] bool runs() const;
  [[nodiscard]] bool is_crowded() const;
  [[nodiscard]] bool checks_soon(const WatchPace& pace) const;
  void end_crowding();
  Duration read_leader(Duration total);
  bool goes_on_as_before(Duration ran, Duration used);
  IdleAction judge(Duration waited, bool is_known);
  IdleAction accept();
  IdleAction finish();

  IdleState state_ = IdleState::Stopped;
  Demand demand_ = Demand::Part;
  IdleMeter meter_;
  FillMeter fill_meter_;
  IdleSuspicion suspicion_;
  Times times_;
  Leader leader_;
  Waiting waiting_;
  Check check_;
  bool polls_ = false;  // at the last reading
  Duration used_{-1};   // at the last check, without polling; < 0: none yet
  Duration span_{0};    // least own time between checks at the ends of slices
};

}  // namespace score::gang
