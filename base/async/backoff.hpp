#pragma once
// Backoff computes the pauses between retries. They double and have jitter, so that 4,096 nodes
// that lost the head at the same instant do not reconnect at the same instant. It is free of Asio;
// the caller sleeps.

#include "base/time.hpp"

#include <algorithm>
#include <cstdint>
#include <random>

namespace score::inline base {

class Backoff {
 public:
  // Requires 0 < min <= max. The seed should differ between nodes.
  Backoff(Duration min, Duration max, std::uint64_t seed)
      : min_(min), max_(max), ceiling_(min), random_(seed) {}

  // Returns a time between half the ceiling and the ceiling. The ceiling starts at min and doubles
  // with each call up to max.
  Duration next() {
    std::uniform_int_distribution<Duration::rep> pick(ceiling_.count() / 2, ceiling_.count());
    const Duration wait(pick(random_));
    ceiling_ = ceiling_ > max_ / 2 ? max_ : std::min(max_, ceiling_ * 2);
    return wait;
  }

  // Resets the ceiling to min. Call it after a success.
  void reset() { ceiling_ = min_; }

 private:
  Duration min_;
  Duration max_;
  Duration ceiling_;
  std::mt19937_64 random_;
};

}  // namespace score::inline base
