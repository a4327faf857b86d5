#pragma once
// When a waiting job will start, as far as time limits say: those of the jobs that run, and of all
// that are ahead of it in line.

#include "gang/schedule/placer.hpp"
#include "gang/schedule/publisher.hpp"

#include <optional>

namespace score::gang {

// Of a job that waits for nodes or room; it need not be in the table. nullopt: unknown, because a
// job that runs or is ahead has no time limit, it waits for something else (held, a limit of its
// user, units of generic resources), or too many are ahead of it. The true time may be earlier,
// because jobs end before their limits, or later, because of priorities and lost nodes.
std::optional<TimePoint> expected_start(const Tables& tables, const Placer& placer,
                                        const Publisher& publisher, const Job& job);

}  // namespace score::gang
