#pragma once
// A timetable in a node's own time: the switcher thread follows it without further input.

#include "base/model/model.hpp"

#include <optional>
#include <vector>

namespace score::gang {

using base::AttemptId;
using base::Duration;
using base::Epoch;
using base::TimePoint;

struct SwitchPlan {
  Epoch epoch{0};
  TimePoint start{};  // node time
  Duration cycle{0};
  std::vector<base::Segment> segments;  // cover [0, cycle), neighbours differ; empty: no jobs
  std::vector<AttemptId> managed;       // frozen unless in the current segment; sorted
  Duration slice{0};                    // as in base::Timetable
  Duration first_slice{0};
  std::vector<AttemptId> background{};  // idle ones, watched; sorted, none is managed
  std::vector<AttemptId> fill{};        // as in base::Timetable
  TimePoint cluster_start{};            // start in cluster time

  friend bool operator==(const SwitchPlan&, const SwitchPlan&) = default;
};

// The switch after `after`: at `at`, exactly `run` of the plan's managed attempts go on.
struct NextSwitch {
  TimePoint at{};
  const std::vector<AttemptId>* run = nullptr;  // into the plan
};

// Both are for the real-time thread: O(log segments), no allocation, any time is safe.
// What runs at `t` (nullptr before the start or without segments).
const std::vector<AttemptId>* running_at(const SwitchPlan& plan, TimePoint t);
// The first boundary after `t` at which the set changes, or at which what runs on is stopped and
// continued; nullopt: never again.
std::optional<NextSwitch> next_switch(const SwitchPlan& plan, TimePoint t);
// Whether at `t` what runs on is to be stopped and continued.
bool restarts_at(const SwitchPlan& plan, TimePoint t);

// The timetable with its start in node time and neighbouring equal segments merged. nullopt: the
// segments do not cover the cycle exactly, or are more than limits::kMaxSegmentsPerCycle, or a list
// is not sorted, or the first slice is not within (0, slice].
std::optional<SwitchPlan> make_plan(const base::Timetable& timetable, TimePoint start);

}  // namespace score::gang
