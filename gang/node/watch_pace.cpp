#include "gang/node/watch_pace.hpp"

#include <algorithm>

namespace score::gang {

namespace {

using namespace std::chrono_literals;

// A check takes some 10 us with warm caches and without crowding, so at this interval 0.2 % of a
// core.
constexpr Duration kShortestInterval = 5ms;
constexpr Duration kLongestInterval = 500ms;
// In slices of at least this length attempts are checked before the end.
constexpr Duration kShortestCut = 10ms;

}  // namespace

WatchPace pace_of(const SwitchPlan& plan) {
  WatchPace pace;
  pace.is_shared = std::any_of(plan.segments.begin(), plan.segments.end(),
                               [](const auto& segment) { return !segment.jobs.empty(); });
  if (!pace.is_shared) return pace;
  const Duration slice = plan.cycle / static_cast<std::int64_t>(plan.segments.size());
  pace.background = std::clamp<Duration>(slice / 2, kShortestInterval, kLongestInterval);
  if (plan.segments.size() < 2) return pace;
  pace.slice = slice;
  if (slice < kShortestCut) return pace;
  pace.in_slice = slice / 8;
  pace.middle = slice / 2;
  return pace;
}

}  // namespace score::gang
