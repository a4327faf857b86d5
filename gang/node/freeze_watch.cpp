#include "gang/node/freeze_watch.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

namespace {

bool is_listed(const std::vector<AttemptId>& sorted, AttemptId attempt) {
  return std::binary_search(sorted.begin(), sorted.end(), attempt);
}

}  // namespace

std::optional<Duration> longest_pause(const SwitchPlan& plan, AttemptId attempt) {
  if (!is_listed(plan.managed, attempt) || plan.segments.empty()) return Duration{0};
  std::optional<Duration> longest;
  Duration pause{0};
  for (int cycle = 0; cycle < 2; ++cycle) {  // a pause may go on in the next one
    for (const base::Segment& segment : plan.segments) {
      pause += segment.length;
      if (!is_listed(segment.jobs, attempt)) continue;
      longest = std::max(longest.value_or(Duration{0}), pause - segment.length);
      pause = Duration{0};
    }
  }
  return longest;
}

bool is_left_out(const SwitchPlan& plan, AttemptId attempt, TimePoint now) {
  if (now < plan.start || !is_listed(plan.managed, attempt)) return false;
  return std::ranges::none_of(plan.segments, [attempt](const base::Segment& segment) {
    return is_listed(segment.jobs, attempt);
  });
}

std::vector<FreezeWatch::Overdue> FreezeWatch::check(std::span<const Stopped> stopped,
                                                     const SwitchPlan& plan, TimePoint now) {
  std::vector<Overdue> overdue;
  std::map<AttemptId, Seen> seen;
  for (const Stopped& one : stopped) {
    const auto before = seen_.find(one.attempt);
    const bool is_same = before != seen_.end() && before->second.ran == one.ran;
    const TimePoint since = is_same ? before->second.since : now;
    seen[one.attempt] = {one.ran, since};
    const bool is_background = is_listed(plan.background, one.attempt);
    const auto pause = is_background ? kLongestHold : longest_pause(plan, one.attempt);
    const Duration time = now - std::max(since, plan.start);
    if (!pause || time <= *pause + kGrace) continue;
    overdue.push_back({one.attempt, time});
  }
  seen_ = std::move(seen);
  return overdue;
}

}  // namespace score::gang
