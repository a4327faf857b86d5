// Converts times in nanoseconds since 1970, which are negative before it.
#pragma once

#include <cstdint>
#include <ctime>

namespace score::pario {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;

constexpr timespec to_timespec(std::int64_t ns) {
  const std::int64_t rest = ns % kSecondNs;
  const std::int64_t seconds = ns / kSecondNs - (rest < 0 ? 1 : 0);
  return {seconds, rest < 0 ? rest + kSecondNs : rest};
}

// Saturates: a file can have a time of any year, but the volume stores those from 1677 to 2262.
constexpr std::int64_t to_ns(const timespec& time) {
  constexpr std::int64_t kMostSeconds = INT64_MAX / kSecondNs - 1;
  if (time.tv_sec > kMostSeconds) return kMostSeconds * kSecondNs;
  if (time.tv_sec < -kMostSeconds) return -kMostSeconds * kSecondNs;
  return std::int64_t{time.tv_sec} * kSecondNs + time.tv_nsec;
}

static_assert(to_timespec(-1).tv_sec == -1 && to_timespec(-1).tv_nsec == kSecondNs - 1);
static_assert(to_ns(to_timespec(-1)) == -1);

}  // namespace score::pario
