#pragma once
// Defines time as types. Only the monotonic clock decides anything; wall time is for people to
// read.
//
// This header is free of Asio. Code that waits or asks for the time takes a Clock&
// (base/async/clock.hpp); pure objects take `TimePoint now` as an argument.

#include "base/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace score::inline base {

using namespace std::chrono_literals;

using Duration = std::chrono::nanoseconds;

// MonotonicClock is a tag for CLOCK_MONOTONIC of this host. Its times are not comparable between
// hosts, nor across a reboot.
struct MonotonicClock {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<MonotonicClock, Duration>;
  static constexpr bool is_steady = true;  // NOLINT(readability-identifier-naming): std's name
};

using TimePoint = MonotonicClock::time_point;

// WallTime is for display, logs and accounting rows only.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// These functions read the clocks. They are for adapters that cannot take a Clock (the switcher's
// thread, PM, the launcher); logic takes the time as an argument.
[[nodiscard]] TimePoint monotonic_now();
[[nodiscard]] WallTime wall_now();

// BareNumber says what a number without a unit means to parse_duration.
enum class BareNumber {
  Refused,
  Minutes,  // for time limits on the command line, as in other job systems
  Seconds,
};

// Parses "250us", "50ms", "30s", "5m", "1.5h", "2d", sums with descending units ("1h30m"),
// "HH:MM:SS", "MM:SS" and "D-HH:MM:SS". In the forms with colons all but the first field are below
// 60 (HH below 24 after D-). "0" needs no unit. The result is never negative. Errors: Malformed;
// TooLarge (over about 292 years).
[[nodiscard]] Result<Duration> parse_duration(std::string_view text,
                                              BareNumber bare = BareNumber::Refused);

// Returns an exact short form: "50ms", "1500ms", "30s", "1m30s", "1d2h". parse_duration reads it
// back if it is not negative.
[[nodiscard]] std::string format_duration(Duration duration);

// Returns "H:MM:SS" or "D-HH:MM:SS" in whole seconds, rounded down, as job tables print it. A
// negative duration gives "0:00:00".
[[nodiscard]] std::string format_hms(Duration duration);

// Returns the time as "2026-11-21T05:41:49Z" (UTC, whole seconds).
[[nodiscard]] std::string format_wall(WallTime time);

}  // namespace score::inline base
