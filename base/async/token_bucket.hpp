#pragma once
// A TokenBucket limits how often something may happen: `rate` times per second in the long run, and
// up to `burst` times at once.

#include "base/time.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace score::inline base {

// It is pure: time is an argument. Time may stand still but must not go back; if it does, nothing
// is refilled.
class TokenBucket {
 public:
  // Requires rate > 0 tokens per second and burst >= 1. The bucket starts full.
  constexpr TokenBucket(double rate, double burst) : rate_(rate), burst_(burst), tokens_(burst) {}

  // Takes `count` tokens if they are available. A refusal takes none and is counted.
  bool try_take(TimePoint now, double count = 1) {
    refill(now);
    if (tokens_ < count) {
      ++refused_;
      return false;
    }
    tokens_ -= count;
    return true;
  }

  // Takes `count` tokens in any case and owes the missing ones. Returns the time at which they will
  // be available. Callers that wait until then, in the order of the calls, do not exceed the rate.
  TimePoint reserve(TimePoint now, double count = 1) {
    refill(now);
    tokens_ -= count;
    if (tokens_ >= 0) return now;
    return now + std::chrono::ceil<Duration>(std::chrono::duration<double>(-tokens_ / rate_));
  }

  // Returns the number of refusals since the last call, for messages such as "and 17 more".
  std::uint64_t take_refused() { return std::exchange(refused_, 0); }

 private:
  void refill(TimePoint now) {
    if (now <= last_) return;
    const std::chrono::duration<double> passed = now - last_;
    tokens_ = std::min(burst_, tokens_ + passed.count() * rate_);
    last_ = now;
  }

  double rate_;
  double burst_;
  double tokens_;
  std::uint64_t refused_ = 0;
  TimePoint last_{};
};

}  // namespace score::inline base
