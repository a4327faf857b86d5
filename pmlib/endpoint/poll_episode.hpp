// PollEpisode decides when a thread that polls should rest. A thread that polls for a message
// repeatedly in vain uses a processor that others could use. After `poll_us` of such polling
// without a break, the thread should sleep for a fraction of the time that it has waited already. A
// message ends the sleep; any other event is noticed later by at most that fraction.
//
// Polling is unbroken while the thread does nothing else. This holds for polls less than kDenseUs
// apart. A longer gap may be work of the thread, or time in which other threads had the processor.
// The processor time that the thread has used since the last reading distinguishes the two. Small
// amounts of it are forgiven, because interrupts and hypervisors are charged to the running thread.
// But no rest follows soon after such time: a thread that works between its polls never has kStreak
// polls without it.
//
// The class also counts the processor time that was spent on polls and rests. So others can
// distinguish a thread that only waits from one that works, even if a poll takes long on a busy
// machine.
//
// The class only decides, and the caller supplies the time. Times are the job's own, so that a
// stopped job does not count as waiting.
#pragma once

#include "pmlib/core/engine.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace score::pm {

class PollEpisode {
 public:
  // All values were chosen by experiment; see docs/lab/polling-and-resting.md.
  static constexpr std::uint32_t kFreePolls = 200;  // after a message, before the first call
  static constexpr std::uint32_t kDenseUs = 4;      // duration of one turn of an MPI's own loop
  static constexpr std::uint32_t kColdPolls = 3;    // after a sleep, which find cold caches
  static constexpr std::uint32_t kColdUs = 40;      // duration of those beyond that, together
  static constexpr std::uint32_t kSwitchUs = 6;     // to a different thread and back
  static constexpr std::uint32_t kReadingUs = 2;    // duration of reading the processor time
  static constexpr std::uint32_t kSlackUs = 8;  // used by one gap without explanation: no rest yet
  static constexpr std::uint32_t kMostWorkUs = 120;  // total of it that ends an episode
  static constexpr std::uint32_t kForgiveness = 8;   // 8 us of polling make up for one of work
  static constexpr std::uint32_t kForgivenPerRestUs = 8;
  static constexpr std::uint32_t kStreak = 8;       // polls without such time before each rest
  static constexpr std::uint32_t kRefreshUs = 100;  // between two readings of the processor time
  static constexpr std::uint32_t kPart = 16;        // a rest lasts at most 1/16 of the silence
  static constexpr std::uint32_t kShortestUs = 50;

  // A negative `poll_us` disables rests. No rest is longer than `longest_us`.
  PollEpisode(std::int64_t poll_us, std::uint32_t longest_us)
      : poll_us_(poll_us), longest_us_(std::max(longest_us, kShortestUs)) {}

  void set_limits(std::int64_t poll_us, std::uint32_t longest_us) {
    poll_us_ = poll_us;
    longest_us_ = std::max(longest_us, kShortestUs);
  }

  // Records that a poll found nothing. `used_us`() returns the processor time of the thread; it is
  // called only where needed. Returns how long to sleep, in microseconds; 0 means to continue.
  template <class UsedUs>
  std::uint32_t found_nothing(Microseconds now, UsedUs used_us) {
    if (!is_open_) {
      owed_polls_ = kFreePolls;
      return begin(now, used_us());
    }
    ++polls_;
    const std::uint32_t gap = pass_to(now);
    since_reading_us_ += gap;
    explained_us_ += std::min(gap, kDenseUs);
    if (gap > kDenseUs && streak_ < kColdPolls) explained_us_ += warm_up(gap - kDenseUs);
    ++streak_;
    if (gap > kDenseUs || since_reading_us_ >= kRefreshUs) {
      const std::uint64_t used = used_us();
      judge(used);
      if (work_us_ > kMostWorkUs) return begin(now, used);
    }
    if (poll_us_ < 0 || silence_us_ < static_cast<std::uint64_t>(poll_us_)) return 0;
    if (streak_ < kStreak) return 0;
    return static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(silence_us_ / kPart, kShortestUs, longest_us_));
  }

  // Records that the thread has slept, or done something else that is not work of the program.
  void rested(Microseconds now, std::uint64_t used_us) {
    pass_to(now);
    polled_us_ += used_us - used_us_;
    note_reading(used_us);
    forgive(kForgivenPerRestUs);
    cold_us_ = kColdUs;
    streak_ = 0;
  }

  // Ends the episode; the next poll that finds nothing begins a new one.
  void found_something() { is_open_ = false; }

  // Returns the microseconds of processor time that were spent on polling and resting since the
  // last call. Forgiven time is included; other work is not.
  std::uint64_t take_polled_us() { return std::exchange(polled_us_, 0); }

  // Returns the length of the episode so far in microseconds.
  [[nodiscard]] std::uint64_t silence_us() const { return is_open_ ? silence_us_ : 0; }

 private:
  // Returns how much of `us` the cold caches after a sleep explain.
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
    note_reading(used_us);
    return 0;
  }

  // Returns the microseconds since the last call. A clock that learns of a stop too late goes back.
  std::uint32_t pass_to(Microseconds now) {
    const auto gap = static_cast<std::int32_t>(now - std::exchange(last_, now));
    const auto passed = static_cast<std::uint32_t>(std::max(gap, 0));
    silence_us_ += passed;
    return passed;
  }

  void judge(std::uint64_t used_us) {
    const std::uint64_t used = used_us - used_us_;
    // If others had the processor, too, that explains some time, but it does not make that much
    // time work.
    if (used > explained_us_ + kSlackUs) streak_ = 0;
    if (since_reading_us_ > used + kSwitchUs) explained_us_ += kSwitchUs;
    const std::uint64_t excess = used - std::min(used, explained_us_);
    work_us_ += excess;
    polled_us_ += used - excess;
    forgive(explained_us_ / kForgiveness);
    polled_us_ += std::min<std::uint64_t>(used, std::uint64_t{polls_} * kDenseUs) *
                  std::exchange(owed_polls_, 0) / std::max(polls_, 1U);
    note_reading(used_us);
  }

  void forgive(std::uint64_t most_us) {
    const std::uint64_t us = std::min(work_us_, most_us);
    work_us_ -= us;
    polled_us_ += us;
  }

  void note_reading(std::uint64_t used_us) {
    used_us_ = used_us;
    since_reading_us_ = 0;
    polls_ = 0;
    explained_us_ = kReadingUs;
  }

  std::int64_t poll_us_;
  std::uint32_t longest_us_;
  bool is_open_ = false;
  std::uint32_t cold_us_ = 0;  // remainder of kColdUs
  std::uint32_t streak_ = 0;
  Microseconds last_ = 0;  // last poll or rest
  std::uint64_t silence_us_ = 0;
  std::uint64_t work_us_ = 0;       // not explained and not forgiven
  std::uint64_t used_us_ = 0;       // at the last reading
  std::uint64_t explained_us_ = 0;  // by polling, since then
  std::uint64_t since_reading_us_ = 0;
  std::uint32_t polls_ = 0;       // since the last reading
  std::uint32_t owed_polls_ = 0;  // polls that are charged like those until the next reading
  std::uint64_t polled_us_ = 0;   // not taken yet
};

}  // namespace score::pm
