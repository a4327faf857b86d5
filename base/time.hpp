#pragma once
// Time as types. Only the monotonic clock decides anything; wall time is for people to read.
//
// This header is free of Asio. Code that waits or asks for the time takes a Clock&
// (base/async/clock.hpp); pure objects get `TimePoint now` as an argument.

#include "base/result.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace score::inline base {

using namespace std::chrono_literals;

using Duration = std::chrono::nanoseconds;

// A tag: CLOCK_MONOTONIC of this host. Not comparable between hosts, nor across a reboot.
struct MonotonicClock {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  using time_point = std::chrono::time_point<MonotonicClock, Duration>;
  static constexpr bool is_steady = true;  // NOLINT(readability-identifier-naming): std's name
};

using TimePoint = MonotonicClock::time_point;

// For display, logs and accounting rows only.
using WallTime = std::chrono::time_point<std::chrono::system_clock, Duration>;

// Reads the clocks. For adapters that cannot take a Clock (the switcher's thread, PM, the
// launcher); logic takes the time as an argument.
[[nodiscard]] TimePoint monotonic_now();
[[nodiscard]] WallTime wall_now();

// What a number without a unit means to parse_duration.
enum class BareNumber {
  Refused,
  Minutes,  // time limits on the command line, as other job systems have it
  Seconds,
};

// "250us", "50ms", "30s", "5m", "1.5h", "2d", sums with falling units ("1h30m"), "HH:MM:SS",
// "MM:SS", "D-HH:MM:SS"; in the colon forms all but the first field are below 60 (HH below 24 after
// D-). "0" needs no unit. Never negative. Errors: Malformed; TooLarge (over about 292 years).
[[nodiscard]] Result<Duration> parse_duration(std::string_view text,
                                              BareNumber bare = BareNumber::Refused);

// Exact and short: "50ms", "1500ms", "30s", "1m30s", "1d2h". parse_duration gives it back if it is
// not negative.
[[nodiscard]] std::string format_duration(Duration duration);

// "H:MM:SS" or "D-HH:MM:SS", whole seconds rounded down, as job tables print it. Negative:
// "0:00:00".
[[nodiscard]] std::string format_hms(Duration duration);

// "2026-11-21T05:41:49Z" (UTC, whole seconds).
[[nodiscard]] std::string format_wall(WallTime time);

}  // namespace score::inline base
