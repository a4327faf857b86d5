// Decides whether an attempt needs the processor. The switcher's thread checks when the attempt's
// slice ends, where it is awake anyway, and at some moments in between.
//
// An idle attempt in the background runs together with the gang that has its turn, and costs
// nothing as long as it does nothing. If it needs the processor, it is stopped at the next check.
// It is then continued for short times until a timetable has it again, so that an absent head does
// not stop an attempt forever.
#pragma once

#include "gang/node/fill_meter.hpp"
#include "gang/node/idle_meter.hpp"
#include "gang/node/watch_pace.hpp"
#include "scored/node/idle/cgroup_usage.hpp"
#include "scored/node/idle/polled_time.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace score::node {

using gang::WatchPace;

// Tracks the idle state of one attempt. All members belong to the switcher's thread, except
// `idle_`.
class IdleWatch {
 public:
  // `cores` is the number of cores that the attempt has been given.
  IdleWatch(std::unique_ptr<CpuUsage> usage, gang::IdleRule rule, std::uint32_t cores = 1)
      : usage_(std::move(usage)), meter_(rule), fill_meter_(cores) {}

  // Thread: any.
  [[nodiscard]] bool is_idle() const { return idle_.load(std::memory_order_acquire); }

  // Names one of its tasks: if this one is busy, the others need no check. A user who names a
  // foreign process can only make the attempt seem busy. Thread: any.
  void set_leader(pid_t process) { leader_.store(process, std::memory_order_relaxed); }

  // Sets its PM contexts; must be called once. Tasks that only poll there and rest are idle.
  // Thread: the main one.
  void set_contexts(std::shared_ptr<const ContextSet> contexts) {
    polled_.set_contexts(std::move(contexts));
  }

  // Only idle attempts may go to the background. An attempt that leaves it stays idle until a
  // check, because it may leave only because no other job needs its cores any more.
  void set_background(bool background, TimePoint now);
  // goes_on() reports that it is continued or keeps running, stops() that it is stopped or still
  // is.
  void goes_on(TimePoint now);
  void stops(TimePoint now, const WatchPace& pace);

  // The attempt has used this much time at idle priority since used() was last read. That time and
  // the waiting in it are not counted for its turns. is_stopped: its turn does not begin now.
  void skip(Duration used, bool is_stopped) noexcept;

  // Returns true if other attempts should fill its turns.
  [[nodiscard]] bool leaves_time() const { return fill_meter_.leaves_time(); }

  // Its turn begins, and other attempts fill it.
  void note_fillers() { fill_meter_.note_fillers(); }

  // Returns all processor time of the attempt so far; < 0: unknown. Thread: any.
  [[nodiscard]] Duration used() const noexcept {
    return usage_ != nullptr ? usage_->used() : Duration{-1};
  }

  // Returns used() at `now`; it is read only once if this is called repeatedly. Thread: the
  // switcher's.
  [[nodiscard]] Duration used_at(TimePoint now) noexcept {
    if (std::exchange(read_at_, now) != now) read_ = used();
    return read_;
  }

  [[nodiscard]] bool is_background() const { return is_background_; }

  // Returns true if it is in the background and must not run.
  [[nodiscard]] bool is_held() const { return is_held_; }

  // Returns when look() is due; nullopt: not before the next call of a different member.
  [[nodiscard]] std::optional<TimePoint> next_look(const WatchPace& pace) const;
  // Checks the attempt. May change is_held().
  void look(TimePoint now, const WatchPace& pace);

 private:
  [[nodiscard]] bool looks_soon(const WatchPace& pace) const;
  void measure(TimePoint now);
  bool judge(Duration ran, Duration used, bool rests);  // false: not decided yet
  Duration ask_waited(Duration ran);
  bool ask_leader();  // false: unknown
  bool is_leader_busy();
  void suspect(bool is_quiet, bool is_whole);

  std::unique_ptr<CpuUsage> usage_;  // null: never checked
  gang::IdleMeter meter_;
  gang::FillMeter fill_meter_;
  PolledTime polled_;
  TimePoint read_at_{};
  Duration read_{-1};  // used() at read_at_
  Duration used_{-1};  // at the last check, without polling; < 0: none yet
  Duration waited_{0};
  Duration unasked_{0};       // own time since waited_ was read
  bool has_stopped_ = false;  // since waited_ was read
  bool asks_again_ = false;   // it will be checked before it is stopped again
  Duration span_{0};          // least own time between checks at the ends of slices
  TimePoint went_on_{};
  TimePoint since_{};  // the last check, or when it went on
  Duration ran_{0};    // own time after the last check and before since_

  std::atomic<pid_t> leader_{0};  // 0: none
  Duration leader_used_{0};       // when it was read
  Duration leader_part_{0};       // since it was last read, if no check came between
  Duration leader_ran_{0};        // ran_ when the leader was read
  int trust_ = 0;                 // slices in which the leader's time is enough
  bool is_crowded_ = false;       // it used little because it had to wait for a processor
  bool wanted_all_ = false;       // at the last check: used all time, or waited for a processor
  bool is_doubted_ = false;       // the leader has just used less than before

  bool is_suspected_ = false;  // did not need the end of the time before the last check
  int mistakes_ = 0;           // suspicions that found it busy; grows as 1, 3, 7, 15
  int spared_ = 0;             // suspicions that are still to be ignored

  TimePoint held_until_{};
  bool is_stopped_ = true;
  bool is_background_ = false;
  bool is_held_ = false;
  std::atomic<bool> idle_{false};
};

}  // namespace score::node
