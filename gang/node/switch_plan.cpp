#include "gang/node/switch_plan.hpp"

#include "base/limits.hpp"

#include <algorithm>
#include <functional>

namespace score::gang {

namespace {

using base::Segment;
using Ids = std::vector<AttemptId>;

// Returns the segment of the phase; the plan must have at least one.
[[gnu::hot]] std::size_t segment_at(const SwitchPlan& plan, Duration phase) {
  const auto after = std::upper_bound(plan.segments.begin(), plan.segments.end(), phase,
                                      [](Duration p, const Segment& s) { return p < s.offset; });
  return static_cast<std::size_t>(after - plan.segments.begin()) - 1;
}

bool strictly_ascending(const Ids& ids) {
  return std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
}

}  // namespace

[[gnu::hot]] const Ids* running_at(const SwitchPlan& plan, TimePoint t) {
  if (t < plan.start || plan.segments.empty()) return nullptr;
  return &plan.segments[segment_at(plan, (t - plan.start) % plan.cycle)].jobs;
}

[[gnu::hot]] std::optional<NextSwitch> next_switch(const SwitchPlan& plan, TimePoint t) {
  if (plan.segments.empty()) return std::nullopt;
  if (t < plan.start) return NextSwitch{plan.start, &plan.segments.front().jobs};
  if (plan.slice > Duration::zero()) {
    const TimePoint first = plan.start + plan.first_slice;
    const TimePoint at = t < first ? first : t + (plan.slice - (t - first) % plan.slice);
    return NextSwitch{at, running_at(plan, at)};
  }
  if (plan.segments.size() == 1) return std::nullopt;

  const Duration phase = (t - plan.start) % plan.cycle;
  const TimePoint cycle_start = t - phase;
  const std::size_t current = segment_at(plan, phase);
  if (current + 1 < plan.segments.size()) {
    const Segment& next = plan.segments[current + 1];
    return NextSwitch{cycle_start + next.offset, &next.jobs};
  }
  // The last segment is followed by the next cycle, whose first segment may run the same jobs.
  const bool same = plan.segments.front().jobs == plan.segments.back().jobs;
  const Segment& next = plan.segments[same ? 1 : 0];
  return NextSwitch{cycle_start + plan.cycle + next.offset, &next.jobs};
}

bool restarts_at(const SwitchPlan& plan, TimePoint t) {
  const TimePoint first = plan.start + plan.first_slice;
  return plan.slice > Duration::zero() && t >= first &&
         (t - first) % plan.slice == Duration::zero();
}

std::optional<SwitchPlan> make_plan(const base::Timetable& timetable, TimePoint start) {
  if (timetable.segments.size() > base::limits::kMaxSegmentsPerCycle) return std::nullopt;
  for (const auto* list :
       {&timetable.managed, &timetable.background, &timetable.fill, &timetable.displaced}) {
    if (!strictly_ascending(*list)) return std::nullopt;
  }
  if (timetable.slice < Duration::zero() || timetable.first_slice > timetable.slice ||
      (timetable.slice > Duration::zero() && timetable.first_slice <= Duration::zero())) {
    return std::nullopt;
  }
  SwitchPlan plan{timetable.epoch,   start,           timetable.cycle,       {},
                  timetable.managed, timetable.slice, timetable.first_slice, timetable.background,
                  timetable.fill,    timetable.start, timetable.displaced};
  Duration covered{0};
  for (const Segment& segment : timetable.segments) {
    if (segment.offset != covered || segment.length <= Duration::zero() ||
        segment.length > timetable.cycle - covered || !strictly_ascending(segment.jobs)) {
      return std::nullopt;
    }
    covered += segment.length;
    if (!plan.segments.empty() && plan.segments.back().jobs == segment.jobs) {
      plan.segments.back().length += segment.length;
    } else {
      plan.segments.push_back(segment);
    }
  }
  if (covered != timetable.cycle) return std::nullopt;
  return plan;
}

}  // namespace score::gang
