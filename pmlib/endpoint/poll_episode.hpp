// When a thread that polls should rest. A thread that looks for a message again and again and finds
// none uses a processor that others could use. After `poll_us` of such polling, without anything
// else in between, it is told to sleep for a part of the time that it has waited already: what it
// waits for comes later by that part at most, if it is not a message, which ends the sleep.
//
// Polling is unbroken while the thread does nothing else. Polls less than kDenseUs apart are. A
// longer gap may be work of the thread's own, or time in which others had the processor: the
// processor time that the thread has used since the last look says which. Small pieces of it are
// forgiven, for interrupts and hypervisors are charged to whoever runs, but no rest follows
// one soon: a thread that works between its polls has no kStreak of them.
//
// It also counts the processor time that went into polls and rests, so that others can tell a
// thread that only waits from one that works, whatever a poll costs on a busy machine.
//
// Decides only: the caller says what time it is. Times are the job's own, so that one that was
// stopped has not waited meanwhile.
#pragma once

#include "pmlib/core/engine.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace score::pm {

class PollEpisode {
 public:
  // All chosen; see docs/lab/polling-and-resting.md.
  static constexpr std::uint32_t kFreePolls = 200;  // after a message, before the first call
  static constexpr std::uint32_t kDenseUs = 4;      // what one turn of an MPI's own loop takes
  static constexpr std::uint32_t kColdPolls = 3;    // after a sleep, that find cold caches
  static constexpr std::uint32_t kColdUs = 40;      // what those take beyond that, together
  static constexpr std::uint32_t kSwitchUs = 6;     // to a thread that ran meanwhile, and back
  static constexpr std::uint32_t kLookUs = 2;       // what a look at the processor time takes
  static constexpr std::uint32_t kSlackUs = 8;  // used by one gap and not explained: no rest yet
  static constexpr std::uint32_t kMostWorkUs = 120;  // of such time in all: a new episode
  static constexpr std::uint32_t kForgiveness = 8;   // polling for so long makes up for one of work
  static constexpr std::uint32_t kForgivenPerRestUs = 8;
  static constexpr std::uint32_t kStreak = 8;       // polls without such time before each rest
  static constexpr std::uint32_t kRefreshUs = 100;  // between two looks at the processor time
  static constexpr std::uint32_t kPart = 16;        // a rest is at most this part of the silence
  static constexpr std::uint32_t kShortestUs = 50;

  // `poll_us` < 0: it never rests. No rest is longer than `longest_us`.
  PollEpisode(std::int64_t poll_us, std::uint32_t longest_us)
      : poll_us_(poll_us), longest_us_(std::max(longest_us, kShortestUs)) {}

  void set_limits(std::int64_t poll_us, std::uint32_t longest_us) {
    poll_us_ = poll_us;
    longest_us_ = std::max(longest_us, kShortestUs);
  }

  // A poll found nothing. `used_us`() is the processor time of the thread; it is called only where
  // it is needed. Returns how long to sleep, in microseconds; 0: go on.
  template <class UsedUs>
  std::uint32_t found_nothing(Microseconds now, UsedUs used_us) {
    if (!is_open_) {
      owed_polls_ = kFreePolls;
      return begin(now, used_us());
    }
    ++polls_;
    const std::uint32_t gap = pass_to(now);
    since_look_us_ += gap;
    explained_us_ += std::min(gap, kDenseUs);
    if (gap > kDenseUs && streak_ < kColdPolls) explained_us_ += warm_up(gap - kDenseUs);
    ++streak_;
    if (gap > kDenseUs || since_look_us_ >= kRefreshUs) {
      const std::uint64_t used = used_us();
      judge(used);
      if (work_us_ > kMostWorkUs) return begin(now, used);
    }
    if (poll_us_ < 0 || silence_us_ < static_cast<std::uint64_t>(poll_us_)) return 0;
    if (streak_ < kStreak) return 0;
    return static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(silence_us_ / kPart, kShortestUs, longest_us_));
  }

  // The thread has slept, or done something else that is no work of the program's.
  void rested(Microseconds now, std::uint64_t used_us) {
    pass_to(now);
    polled_us_ += used_us - used_us_;
    look(used_us);
    forgive(kForgivenPerRestUs);
    cold_us_ = kColdUs;
    streak_ = 0;
  }

  // The next poll that finds nothing begins an episode.
  void found_something() { is_open_ = false; }

  // Microseconds of processor time that went into polling and resting, since the last call. What is
  // forgiven is part of it; other work is not.
  std::uint64_t take_polled_us() { return std::exchange(polled_us_, 0); }

  // Of the episode so far, microseconds.
  [[nodiscard]] std::uint64_t silence_us() const { return is_open_ ? silence_us_ : 0; }

 private:
  // How much of it the cold caches after a sleep explain.
  std::uint32_t warm_up(std::uint32_t us) {
    const std::uint32_t explained = std::min(us, cold_us_);
    cold_us_ -= explained;
    return explained;
  }

  std::uint32_t begin(Microseconds now, std::uint64_t used_us) {
    is_open_ = true;
    cold_us_ = 0;
    last_ = now;
    silence_us_ = work_us_ = 0;
    streak_ = 0;
    look(used_us);
    return 0;
  }

  // Microseconds since the last call. A clock that is told of a stop too late goes back.
  std::uint32_t pass_to(Microseconds now) {
    const auto gap = static_cast<std::int32_t>(now - std::exchange(last_, now));
    const auto passed = static_cast<std::uint32_t>(std::max(gap, 0));
    silence_us_ += passed;
    return passed;
  }

  void judge(std::uint64_t used_us) {
    const std::uint64_t used = used_us - used_us_;
    // Others had the processor, too: that explains some time, but not that much is work.
    if (used > explained_us_ + kSlackUs) streak_ = 0;
    if (since_look_us_ > used + kSwitchUs) explained_us_ += kSwitchUs;
    const std::uint64_t excess = used - std::min(used, explained_us_);
    work_us_ += excess;
    polled_us_ += used - excess;
    forgive(explained_us_ / kForgiveness);
    polled_us_ += std::min<std::uint64_t>(used, std::uint64_t{polls_} * kDenseUs) *
                  std::exchange(owed_polls_, 0) / std::max(polls_, 1U);
    look(used_us);
  }

  void forgive(std::uint64_t most_us) {
    const std::uint64_t us = std::min(work_us_, most_us);
    work_us_ -= us;
    polled_us_ += us;
  }

  void look(std::uint64_t used_us) {
    used_us_ = used_us;
    since_look_us_ = 0;
    polls_ = 0;
    explained_us_ = kLookUs;
  }

  std::int64_t poll_us_;
  std::uint32_t longest_us_;
  bool is_open_ = false;
  std::uint32_t cold_us_ = 0;  // left of kColdUs
  std::uint32_t streak_ = 0;
  Microseconds last_ = 0;  // poll or rest
  std::uint64_t silence_us_ = 0;
  std::uint64_t work_us_ = 0;       // not explained and not forgiven
  std::uint64_t used_us_ = 0;       // at the last look
  std::uint64_t explained_us_ = 0;  // by polling, since then
  std::uint64_t since_look_us_ = 0;
  std::uint32_t polls_ = 0;       // since the last look
  std::uint32_t owed_polls_ = 0;  // took as much as those until the next look take
  std::uint64_t polled_us_ = 0;   // not taken yet
};

}  // namespace score::pm
