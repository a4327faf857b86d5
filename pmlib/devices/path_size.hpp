// PathSize finds the largest frame that reaches one peer by probing, without any report from a
// router.
//
// A try sends a probe of the size in question and, behind it, a small companion. If both are
// answered, the size passes. If only the companion is answered, the probe was lost: after three
// tries the size does not pass. If neither is answered, the peer is away or busy, which shows
// nothing about the path, and the try is repeated. The search halves the range between the sizes
// that pass and that do not (RFC 8899 without its timers). A size that has passed may stop passing.
// A caller that sees repeated losses of large frames reports this, and frames stay small until a
// probe has passed again.
//
// The class has no clock and no socket. Sizes are bytes of whole frames. Times are microseconds,
// and wrap.
#pragma once

#include "pmlib/core/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace score::pm {

struct PathLimits {
  std::size_t floor = 1472;    // passes everywhere: an MTU of 1500 minus IP and UDP headers
  std::size_t ceiling = 1472;  // what this host's own link carries; at least `floor`
};

class PathSize {
 public:
  struct Probe {
    std::size_t bytes = 0;     // 0: no probe is due
    std::uint32_t number = 0;  // its companion has the next number
  };

  explicit PathSize(const PathLimits& limits)
      : floor_(limits.floor), ceiling_(limits.ceiling), low_(limits.floor), high_(limits.ceiling) {}

  // Frames up to this size are sent whole.
  std::size_t limit() const { return low_; }

  bool is_searching() const { return low_ + kNear <= high_; }

  // Returns the probe to be sent now, if any.
  Probe on_turn(Microseconds now) {
    if (!is_searching()) {
      if (high_ == ceiling_ || !time_reached(now, search_again_)) return {};
      high_ = ceiling_;
      next_ = 0;
    }
    if (is_waiting_ && companion_back_ && time_reached(now, companion_at_ + kGrace)) lose(now);
    if (!is_searching() || (is_waiting_ && !time_reached(now, repeat_at_))) return {};
    if (is_waiting_) pause_ = std::min(pause_ * 2, kLongestPause);
    if (next_ == 0) next_ = tries_at_top_ ? high_ : middle();
    number_ += 2;
    is_waiting_ = true;
    companion_back_ = false;
    repeat_at_ = now + pause_;
    return {next_, number_};
  }

  // Handles the peer's answer to the probe, or the companion, of this number.
  void on_answer(std::uint32_t number, Microseconds now) {
    if (!is_waiting_) return;
    if (number == number_ + 1 && !companion_back_) {
      companion_back_ = true;
      companion_at_ = now;
    }
    if (number != number_) return;
    low_ = next_;
    settle(now);
  }

  // The caller must call this when frames larger than the floor are lost repeatedly.
  void on_suspicion() {
    if (low_ == floor_) return;
    high_ = low_;
    low_ = floor_;
    tries_at_top_ = true;
    begin();
  }

 private:
  static constexpr std::size_t kNear = 16;  // bytes; a smaller range needs no search
  static constexpr unsigned kTries = 3;
  static constexpr Microseconds kGrace = 10'000;       // for a probe that was overtaken
  static constexpr Microseconds kFirstPause = 50'000;  // doubles each time
  static constexpr Microseconds kLongestPause = 1'000'000;
  static constexpr Microseconds kSearchAgain = 60'000'000;  // the path may have become better

  std::size_t middle() const { return low_ + (high_ - low_ + 1) / 2; }

  void begin() {
    is_waiting_ = false;
    next_ = 0;
    lost_ = 0;
    pause_ = kFirstPause;
  }

  // Ends a search step: the probed size passes.
  void settle(Microseconds now) {
    tries_at_top_ = false;
    search_again_ = now + kSearchAgain;
    begin();
  }

  // Handles a try in which the companion was answered and the probe was not.
  void lose(Microseconds now) {
    is_waiting_ = false;
    if (++lost_ < kTries) return;
    high_ = next_ - 1;
    settle(now);
    if (!is_searching()) high_ = low_;
  }

  std::size_t floor_, ceiling_;
  std::size_t low_, high_;    // largest that passes; largest that may pass
  std::size_t next_ = 0;      // size to probe, 0 = to be chosen
  bool tries_at_top_ = true;  // the largest size passes in most cases, so it is tried first
  bool is_waiting_ = false;
  bool companion_back_ = false;
  unsigned lost_ = 0;  // lost tries
  std::uint32_t number_ = 0;
  Microseconds pause_ = kFirstPause;
  Microseconds repeat_at_ = 0;
  Microseconds companion_at_ = 0;
  Microseconds search_again_ = 0;
};

}  // namespace score::pm
