// Judges whether a thread that looks for messages does nothing else in between. PollEpisode takes a
// turn of 4 us for polling, because that is what a turn of an MPI takes; a program that works for a
// microsecond between two tests would pass for one that waits. So where a look does not come from a
// call that waits, the time between a look and the next one counts too, without the look.
//
// Decides only: the caller says what time it is.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

namespace score::pm {

class QuickReturns {
 public:
  // Chosen; see docs/lab/polling-and-resting.md.
  static constexpr std::uint64_t kAwayNs = 600;  // from a test of an MPI to the next one, and more
  static constexpr std::uint32_t kLooks = 8;     // as PollEpisode::kStreak
  static constexpr int kLateOnes = 1;            // of these: interrupts, what an MPI does at times

  // A look begins, or ends in vain; nanoseconds of any steady clock. `switches`() counts how often
  // the thread has lost its processor: it is called only where it is needed. A late look after
  // which others had the processor says nothing, so it counts neither way.
  template <class Switches>
  void begin_look(std::uint64_t now_ns, Switches switches) {
    if (left_ns_ == 0) return;
    const bool is_late = now_ns - left_ns_ > kAwayNs;
    if (is_late && was_switched(switches)) return;
    late_ = (late_ << 1 | (is_late ? 1U : 0U)) & kMask;
  }

  void end_look(std::uint64_t now_ns) { left_ns_ = now_ns; }

  // The thread has slept in a look: what follows up to the next one is not known.
  void note_sleep() { left_ns_ = 0; }

  // It did something else.
  void start_anew() {
    late_ = kMask;
    left_ns_ = 0;
  }

  [[nodiscard]] bool are_quick() const { return std::popcount(late_) <= kLateOnes; }

 private:
  // A thread that was late in vain for long enough works, and is not asked again soon.
  template <class Switches>
  bool was_switched(Switches switches) {
    if (unasked_ > 0) {
      --unasked_;
      return false;
    }
    const std::uint64_t count = switches();
    const bool is_switched = std::exchange(switches_, count) != count;
    in_vain_ = is_switched ? 0 : in_vain_ + 1;
    if (in_vain_ < kLooks) return is_switched;
    in_vain_ = 0;
    unasked_ = kUnasked;
    return false;
  }

  static constexpr std::uint32_t kUnasked = 64;
  static constexpr std::uint32_t kMask = (1U << kLooks) - 1;

  std::uint32_t late_ = kMask;  // a bit per look, the last one lowest
  std::uint64_t switches_ = 0;  // when it was asked last
  std::uint32_t in_vain_ = 0;   // asked since it was switched
  std::uint32_t unasked_ = 0;   // so many late looks are not asked for
  std::uint64_t left_ns_ = 0;   // 0: not since start_anew() or note_sleep()
};

}  // namespace score::pm
