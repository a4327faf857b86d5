#pragma once
// A SwitchPlan is a timetable in a node's own time; the switcher thread follows it without further
// input.

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
  std::vector<AttemptId> displaced{};   // as in base::Timetable

  friend bool operator==(const SwitchPlan&, const SwitchPlan&) = default;
};

// NextSwitch describes the switch after a time: at `at`, exactly `run` of the plan's managed
// attempts continue.
struct NextSwitch {
  TimePoint at{};
  const std::vector<AttemptId>* run = nullptr;  // points into the plan
};

// The next calls are for the real-time thread: O(log segments), no allocation, any time is safe.
// Returns the attempts that run at `t` (nullptr before the start or without segments).
const std::vector<AttemptId>* running_at(const SwitchPlan& plan, TimePoint t);
// Returns the next boundary after `t`; nullopt if there is none. At a boundary the set changes, or
// attempts that run on are stopped and continued.
std::optional<NextSwitch> next_switch(const SwitchPlan& plan, TimePoint t);
// Returns whether attempts that run on are stopped and continued at `t`.
bool restarts_at(const SwitchPlan& plan, TimePoint t);

// Returns the timetable with its start in node time and neighbouring equal segments merged. Returns
// nullopt if the segments do not cover the cycle exactly, or are more than
// limits::kMaxSegmentsPerCycle, or a list is not sorted, or the first slice is not within (0,
// slice].
std::optional<SwitchPlan> make_plan(const base::Timetable& timetable, TimePoint start);

}  // namespace score::gang
