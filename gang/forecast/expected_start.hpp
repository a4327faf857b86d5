#pragma once
// Computes when a waiting job will start, from the time limits of the running jobs and of all jobs
// ahead of it in the queue.

#include "gang/schedule/placer.hpp"
#include "gang/schedule/publisher.hpp"

#include <optional>

namespace score::gang {

// Returns the expected start of a job that waits for nodes or room; the job need not be in the
// table. Returns nullopt if it is unknown: a job that runs or is ahead has no time limit, the job
// waits for something else (it is held, a limit of its user, units of generic resources), or too
// many jobs are ahead of it. The true start may be earlier, because jobs end before their limits,
// or later, because of priorities and lost nodes.
std::optional<TimePoint> expected_start(const Tables& tables, const Placer& placer,
                                        const Publisher& publisher, const Job& job);

}  // namespace score::gang
