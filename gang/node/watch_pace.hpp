#pragma once
// WatchPace defines how often attempts are checked for being idle under a plan.

#include "gang/node/switch_plan.hpp"

namespace score::gang {

struct WatchPace {
  Duration background{std::chrono::seconds{1}};
  Duration slice{0};     // 0: no attempts take turns
  Duration in_slice{0};  // for attempts that may be idle soon; 0: not before the end of the slice
  Duration middle{0};    // after the start of a slice, for all that are not crowded; 0: none
  Duration slow{std::chrono::seconds{1}};
  bool is_shared = false;  // other attempts run at the same time as the background

  friend bool operator==(const WatchPace&, const WatchPace&) = default;
};

WatchPace pace_of(const SwitchPlan& plan);

}  // namespace score::gang
