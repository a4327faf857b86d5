#include "pmlib/endpoint/stoppable_clock.hpp"

#include "base/cpu/counter.hpp"

#include <ctime>

namespace score::pm {

struct CounterRate {
  std::uint64_t start_ticks = 0, start_us = 0;
  std::uint64_t us_per_tick = 0;  // times 2^32; 0: the counter is unusable
};

std::uint64_t monotonic_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000;
}

namespace {

CounterRate measure_counter() {
  constexpr std::uint64_t kMeasureUs = 200;
  if (!base::has_steady_counter()) return {};
  CounterRate rate{base::read_counter(), monotonic_us(), 0};
  std::uint64_t now = rate.start_us;
  while (now - rate.start_us < kMeasureUs) now = monotonic_us();
  const std::uint64_t ticks = base::read_counter() - rate.start_ticks;
  if (ticks == 0) return {};
  rate.us_per_tick = ((now - rate.start_us) << 32) / ticks;
  return rate;
}

std::uint64_t microseconds_by(const CounterRate& rate) {
  if (rate.us_per_tick == 0) [[unlikely]]
    return monotonic_us();
  __extension__ using Wide = unsigned __int128;
  const std::uint64_t ticks = base::read_counter() - rate.start_ticks;
  return rate.start_us + static_cast<std::uint64_t>(Wide{ticks} * rate.us_per_tick >> 32);
}

const CounterRate& counter_rate() {
  static const CounterRate rate = measure_counter();
  return rate;
}

}  // namespace

std::uint64_t quick_us() {
  return microseconds_by(counter_rate());
}

StoppableClock::StoppableClock(const Segment& segment)
    : header_(segment.header()), rate_(counter_rate()) {}

Microseconds StoppableClock::now() {
  return static_cast<Microseconds>(microseconds_by(rate_) -
                                   header_.stopped_us.load(std::memory_order_relaxed));
}

}  // namespace score::pm
