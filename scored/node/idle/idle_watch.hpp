// Makes the readings that gang::IdleJudge requests to decide whether an attempt needs the
// processor. The switcher's thread checks when the attempt's slice ends, where it is awake anyway,
// and at some moments in between.
#pragma once

#include "gang/node/idle_judge.hpp"
#include "scored/node/idle/cgroup_usage.hpp"
#include "scored/node/idle/polled_time.hpp"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

namespace score::node {

using gang::WatchPace;

// Tracks the idle state of one attempt. All members belong to the switcher's thread, except
// `idle_` and `leader_`.
class IdleWatch {
 public:
  // `cores` is the number of cores that the attempt has been given. Without `usage` (null) the
  // attempt is never checked.
  IdleWatch(std::unique_ptr<CpuUsage> usage, gang::IdleRule rule, std::uint32_t cores = 1)
      : usage_(std::move(usage)), judge_(rule, cores) {}

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
  void goes_on(TimePoint now) { handle(gang::IdleEvent::Continue, now, {}); }

  void stops(TimePoint now, const WatchPace& pace) { handle(gang::IdleEvent::Stop, now, pace); }

  // See gang::IdleJudge::skip(). `used` is the time since used() was last read.
  void skip(Duration used, bool is_stopped) noexcept;

  [[nodiscard]] bool leaves_time() const { return judge_.leaves_time(); }

  void note_fillers() { judge_.note_fillers(); }

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

  [[nodiscard]] bool is_background() const { return judge_.is_background(); }

  // Returns true if it is in the background and must not run.
  [[nodiscard]] bool is_held() const { return judge_.is_held(); }

  // Returns when check() is due; nullopt: not before the next call of a different member.
  [[nodiscard]] std::optional<TimePoint> next_check(const WatchPace& pace) const {
    return usage_ != nullptr ? judge_.next_check(pace) : std::nullopt;
  }

  // Checks the attempt. May change is_held().
  void check(TimePoint now, const WatchPace& pace) { handle(gang::IdleEvent::Due, now, pace); }

 private:
  void handle(gang::IdleEvent event, TimePoint now, const WatchPace& pace);
  gang::IdleAction carry_out(gang::IdleAction action, TimePoint now);
  [[nodiscard]] Duration leader_time() const;

  std::unique_ptr<CpuUsage> usage_;  // null: never checked
  gang::IdleJudge judge_;
  PolledTime polled_;
  TimePoint read_at_{};
  Duration read_{-1};              // used() at read_at_
  std::atomic<pid_t> leader_{0};   // 0: none
  std::atomic<bool> idle_{false};  // as judge_.is_idle()
};

}  // namespace score::node
