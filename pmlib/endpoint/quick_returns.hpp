// QuickReturns determines if a thread that polls for messages does nothing else in between.
// PollEpisode counts a turn of 4 us as polling, because a turn of an MPI takes that long. A program
// that works for a microsecond between two tests would therefore seem to wait. So if a poll does
// not come from a call that waits, the time between a poll and the next one counts, too, without
// the poll itself.
//
// The class only decides, and the caller supplies the time.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

namespace score::pm {

class QuickReturns {
 public:
  // The values were chosen by experiment; see docs/lab/polling-and-resting.md.
  static constexpr std::uint64_t kAwayNs = 600;  // more than between two tests of an MPI
  static constexpr std::uint32_t kPolls = 8;     // like PollEpisode::kStreak
  static constexpr int kLateOnes = 1;            // of these: interrupts, rare work of an MPI

  // Records that a poll begins, or that it ended in vain, in nanoseconds of any steady clock.
  // `switches`() returns how often the thread has lost its processor; it is called only where
  // needed. A late poll after which others had the processor shows nothing, so it counts neither
  // way.
  template <class Switches>
  void begin_poll(std::uint64_t now_ns, Switches switches) {
    if (left_ns_ == 0) return;
    const bool is_late = now_ns - left_ns_ > kAwayNs;
    if (is_late && was_switched(switches)) return;
    late_ = (late_ << 1 | (is_late ? 1U : 0U)) & kMask;
  }

  void end_poll(std::uint64_t now_ns) { left_ns_ = now_ns; }

  // Records that the thread has slept in a poll: the time from there to the next one is not known.
  void note_sleep() { left_ns_ = 0; }

  // Records that the thread did something else.
  void start_anew() {
    late_ = kMask;
    left_ns_ = 0;
  }

  [[nodiscard]] bool are_quick() const { return std::popcount(late_) <= kLateOnes; }

 private:
  // Returns true if others had the processor. After kPolls late polls in a row without a switch the
  // thread is working, so the count is not read again for kUnasked late polls.
  template <class Switches>
  bool was_switched(Switches switches) {
    if (unasked_ > 0) {
      --unasked_;
      return false;
    }
    const std::uint64_t count = switches();
    const bool is_switched = std::exchange(switches_, count) != count;
    in_vain_ = is_switched ? 0 : in_vain_ + 1;
    if (in_vain_ < kPolls) return is_switched;
    in_vain_ = 0;
    unasked_ = kUnasked;
    return false;
  }

  static constexpr std::uint32_t kUnasked = 64;
  static constexpr std::uint32_t kMask = (1U << kPolls) - 1;

  std::uint32_t late_ = kMask;  // one bit per poll, the last one lowest
  std::uint64_t switches_ = 0;  // at the last reading
  std::uint32_t in_vain_ = 0;   // readings since the last switch
  std::uint32_t unasked_ = 0;   // late polls for which the count is not read
  std::uint64_t left_ns_ = 0;   // 0: no poll since start_anew() or note_sleep()
};

}  // namespace score::pm
