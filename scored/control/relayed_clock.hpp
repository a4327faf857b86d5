#pragma once
// Checks cluster times that a member on the way has answered in place of the head. Such a member
// may be wrong or hostile, so only the head itself may contradict the clock.

#include "gang/node/clock_filter.hpp"

namespace score::control {

// Returns true if both cannot be right. A clock that is not synchronised contradicts nothing.
[[nodiscard]] bool contradicts(const gang::ClockFilter& clock, const gang::ClockSample& sample);

}  // namespace score::control
