#pragma once
// Determines what an attempt has used on this node.

#include "base/model/usage.hpp"
#include "scored/node/attempts/attempt.hpp"

namespace score::node {

// Returns what the attempt has used so far. `reaped` is what its shepherd has counted of processes
// that have ended. Only the kernel's counters of the cgroup know processes for which no parent has
// waited, and only the shepherd's know disks and context switches. Takes some system calls per task
// with a PM context.
[[nodiscard]] base::Usage usage_of(const AttemptParts& parts, const Attempt& attempt,
                                   base::Usage reaped);

// Remembers the attempt's memory where it is more than before. Children that run side by side show
// only in such samples, because the shepherd hears of the largest one alone. Call it every
// kMemoryPeriod.
void sample_memory(const AttemptParts& parts, Attempt& attempt);

inline constexpr Duration kMemoryPeriod = std::chrono::seconds{2};

}  // namespace score::node
