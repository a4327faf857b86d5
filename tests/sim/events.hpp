#pragma once
// Simulates virtual time: events happen in the order of their times, then of their creation.

#include "base/time.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <utility>

namespace score::sim {

using base::Duration;
using base::TimePoint;

class Events {
 public:
  [[nodiscard]] TimePoint now() const { return now_; }

  void at(TimePoint t, std::function<void()> what) {
    queue_.emplace(std::pair(std::max(t, now_), next_++), std::move(what));
  }

  void after(Duration d, std::function<void()> what) { at(now_ + d, std::move(what)); }

  // Returns false if no event is left.
  bool step() {
    if (queue_.empty()) return false;
    auto first = queue_.extract(queue_.begin());
    now_ = first.key().first;
    first.mapped()();
    return true;
  }

 private:
  TimePoint now_{std::chrono::hours{1}};
  std::uint64_t next_ = 0;
  std::map<std::pair<TimePoint, std::uint64_t>, std::function<void()>> queue_;
};

// Generates all random numbers of a run, so that a seed repeats it.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : engine_(seed) {}

  bool one_in(std::uint64_t n) { return below(n) == 0; }

  std::uint64_t below(std::uint64_t n) { return engine_() % n; }

  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }

  Duration between(Duration low, Duration high) {
    return low + Duration{static_cast<std::int64_t>(
                     below(static_cast<std::uint64_t>((high - low).count()) + 1))};
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace score::sim
