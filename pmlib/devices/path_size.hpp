// How large a frame may be to reach one peer, found by asking: no router has to say anything.
//
// A try sends a probe of the size in question and, behind it, a small companion. If both come back
// the size passes. If only the companion does, the probe was lost: after three tries the size does
// not pass. If neither comes back the peer is away or busy, which says nothing about the path; the
// try is repeated. Between what passes and what does not the search halves (RFC 8899 without its
// timers). A size that has passed may stop to: a caller that sees large frames lost repeatedly says
// so, and until a probe has passed again frames are small.
//
// Pure: no clock, no socket. Sizes are bytes of whole frames. Times are microseconds, and wrap.
#pragma once

#include "pmlib/core/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace score::pm {

struct PathLimits {
  std::size_t floor = 1472;    // passes everywhere: an MTU of 1500 less IP and UDP
  std::size_t ceiling = 1472;  // what this host's own link carries; at least `floor`
};

class PathSize {
 public:
  struct Probe {
    std::size_t bytes = 0;     // 0: none is due
    std::uint32_t number = 0;  // its companion has the next one
  };

  explicit PathSize(const PathLimits& limits)
      : floor_(limits.floor), ceiling_(limits.ceiling), low_(limits.floor), high_(limits.ceiling) {}

  // Frames up to this size go whole.
  std::size_t limit() const { return low_; }

  bool is_searching() const { return low_ + kNear <= high_; }

  // The probe to be sent now, if any.
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

  // The peer has answered the probe, or the companion, of this number.
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

  // Frames larger than the floor are lost again and again.
  void on_suspicion() {
    if (low_ == floor_) return;
    high_ = low_;
    low_ = floor_;
    tries_at_top_ = true;
    begin();
  }

 private:
  static constexpr std::size_t kNear = 16;  // bytes; not worth a search
  static constexpr unsigned kTries = 3;
  static constexpr Microseconds kGrace = 10'000;       // for a probe that was overtaken
  static constexpr Microseconds kFirstPause = 50'000;  // then twice as long
  static constexpr Microseconds kLongestPause = 1'000'000;
  static constexpr Microseconds kSearchAgain = 60'000'000;  // the path may have become better

  std::size_t middle() const { return low_ + (high_ - low_ + 1) / 2; }

  void begin() {
    is_waiting_ = false;
    next_ = 0;
    lost_ = 0;
    pause_ = kFirstPause;
  }

  // What was asked for passes.
  void settle(Microseconds now) {
    tries_at_top_ = false;
    search_again_ = now + kSearchAgain;
    begin();
  }

  // The companion came and the probe did not.
  void lose(Microseconds now) {
    is_waiting_ = false;
    if (++lost_ < kTries) return;
    high_ = next_ - 1;
    settle(now);
    if (!is_searching()) high_ = low_;
  }

  std::size_t floor_, ceiling_;
  std::size_t low_, high_;    // passes; may pass
  std::size_t next_ = 0;      // asked for, 0 = to be chosen
  bool tries_at_top_ = true;  // mostly all is well: the largest first
  bool is_waiting_ = false;
  bool companion_back_ = false;
  unsigned lost_ = 0;  // tries
  std::uint32_t number_ = 0;
  Microseconds pause_ = kFirstPause;
  Microseconds repeat_at_ = 0;
  Microseconds companion_at_ = 0;
  Microseconds search_again_ = 0;
};

}  // namespace score::pm
