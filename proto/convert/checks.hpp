// The checks that Value.check of options.proto asks for: they concern several members, or a list as
// a whole. The header also brings the constants that rules name.
#pragma once

#include "base/limits.hpp"
#include "base/model/model.hpp"
#include "proto/frames/field_check.hpp"

#include <csignal>
#include <limits>
#include <sys/resource.h>
#include <sys/types.h>

namespace score::proto {

// A century is practically no limit, and it can be added to any time point.
inline constexpr base::Duration kLongestLimit = std::chrono::hours(24 * 36'500);

void check_value(FieldCheck& check, const base::ResourceRequest& request);
void check_value(FieldCheck& check, const base::NodeInfo& node);
// Checks the whole contract of base::Timetable: segments cover the cycle without gap or overlap.
void check_value(FieldCheck& check, const base::Timetable& timetable);
void check_value(FieldCheck& check, const base::PlacedTasks& placed);

}  // namespace score::proto
