// VainPolls decides when a thread polls in vain that may not sleep, because its call can end by
// other means than PM: MPICH's shared memory, or a window. PM sees no message there. It sees that
// one call does not return, and how long its polls take: a thread that copies messages between its
// polls takes longer for them than one that finds nothing.
//
// Polls are looked at in groups of kPolls. The class only decides; the caller supplies the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace score::pm::fi {

class VainPolls {
 public:
  // All values are chosen.
  static constexpr std::uint32_t kPolls = 1'024;         // per look, which then costs 2 ns per poll
  static constexpr std::uint64_t kFirstPauseUs = 5'000;  // before a call is looked up and watched
  static constexpr std::uint64_t kLongestPauseUs = 160'000;  // if calls return again and again
  static constexpr std::uint64_t kVainUs = 10'000;  // of processor time that make polls vain
  // A look is long if it took kFactor times the least time in this call and kSlackUs more, or a
  // microsecond per poll. It may take kSwitchUs more for each time that others had the processor,
  // after which its caches are cold. MPI libraries yield it often. After kLongLooks in a row the
  // thread works between its polls.
  static constexpr std::uint64_t kFactor = 3, kSlackUs = 100, kSwitchUs = 50;
  static constexpr int kLongLooks = 8;

  enum class Answer : std::uint8_t {
    None,   // go on
    Watch,  // find the call and watch it: call watching() if that succeeds, else returned()
    Check,  // find out whether the watched call has returned: call returned() or still_there()
  };

  // Returns true once per kPolls polls; then look() is due.
  [[nodiscard]] bool count_poll() { return ++polls_ % kPolls == 0; }

  // `now_us` is the time, `used_us` the processor time of the thread, and `switches` how often it
  // has lost its processor.
  Answer look(std::uint64_t now_us, std::uint64_t used_us, std::uint64_t switches) {
    const Reading before = std::exchange(last_, {now_us, used_us, switches});
    look_us_ = is_new_ ? 0 : used_us - before.used_us;
    most_us_ = std::min<std::uint64_t>(kFactor * least_us_ + kSlackUs, kPolls) +
               kSwitchUs * (switches - before.switches);
    if (is_new_) {
      is_new_ = false;
      next_us_ = now_us + pause_us_;
      return Answer::None;
    }
    least_us_ = std::min(least_us_, std::max<std::uint64_t>(look_us_, 1));
    if (is_watching_) return Answer::Check;
    return now_us >= next_us_ ? Answer::Watch : Answer::None;
  }

  void watching() {
    is_watching_ = true;
    least_us_ = look_us_;  // each function has a loop of its own
    vain_us_ = owed_us_ = 0;
    long_looks_ = 0;
  }

  // The call has returned, or cannot be watched.
  void returned() {
    pause_us_ = vain_us_ >= kVainUs ? kFirstPauseUs : std::min(2 * pause_us_, kLongestPauseUs);
    next_us_ = last_.now_us + pause_us_;
    is_watching_ = false;
    vain_us_ = owed_us_ = 0;
  }

  // The call has not returned.
  void still_there() {
    const bool is_long = look_us_ > most_us_;
    long_looks_ = is_long ? long_looks_ + 1 : 0;
    if (long_looks_ >= kLongLooks) vain_us_ = owed_us_ = 0;
    if (long_looks_ > 0 && vain_us_ < kVainUs) return;
    vain_us_ += look_us_;
    owed_us_ += look_us_;
  }

  // The link had a message, or the thread polls a different one.
  void start_anew() {
    is_new_ = true;
    is_watching_ = false;
    vain_us_ = owed_us_ = 0;
  }

  [[nodiscard]] bool is_watching() const { return is_watching_; }

  [[nodiscard]] bool are_vain() const { return is_watching_ && vain_us_ >= kVainUs; }

  // Returns the processor time of vain polls since the last call. Requires are_vain().
  [[nodiscard]] std::uint64_t take_polled_us() { return std::exchange(owed_us_, 0); }

 private:
  struct Reading {
    std::uint64_t now_us = 0;
    std::uint64_t used_us = 0;
    std::uint64_t switches = 0;
  };

  std::uint32_t polls_ = 0;
  bool is_new_ = true;
  bool is_watching_ = false;
  int long_looks_ = 0;  // in a row
  Reading last_;
  std::uint64_t most_us_ = 0;                // of a look that is not long
  std::uint64_t look_us_ = 0;                // processor time from the look before to the last one
  std::uint64_t least_us_ = UINT64_MAX / 4;  // least look_us_ so far
  std::uint64_t pause_us_ = kFirstPauseUs;
  std::uint64_t next_us_ = 0;  // the next Watch
  std::uint64_t vain_us_ = 0;  // of the watched call
  std::uint64_t owed_us_ = 0;  // of vain_us_, not taken yet
};

}  // namespace score::pm::fi
