#pragma once
// Computes which parts of its time limits a job has used, for the notices TIME_LIMIT_50, _80 and
// _90. These functions are pure.

#include "base/request/notices.hpp"
#include "base/time.hpp"

#include <cstdint>
#include <optional>

namespace score::head {

// TimeUse is what a job has used of its limits. A limit of 0 is none.
struct TimeUse {
  Duration scheduled{0};
  Duration scheduled_limit{0};
  Duration elapsed{0};
  Duration wall_limit{0};
};

struct PartsReached {
  NoticeKinds kinds;          // those that were reached after `noticed`
  std::uint32_t percent = 0;  // the new `noticed`
};

// Compares with `noticed`, the greatest part in percent that was noticed before.
[[nodiscard]] PartsReached parts_reached(const TimeUse& use, std::uint32_t noticed);

// Returns after which time the next part can be reached at the earliest; nullopt: none is left.
// Scheduled time passes at most as fast as time, so a job that is scheduled rarely reaches the part
// later, and the caller asks again. The result is at least kLeastWait.
inline constexpr Duration kLeastWait = 100ms;
[[nodiscard]] std::optional<Duration> time_to_next_part(const TimeUse& use, std::uint32_t noticed);

}  // namespace score::head
