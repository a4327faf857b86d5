#pragma once
// Says which jobs may be parked; see parking.hpp.

#include "gang/state/tables.hpp"

#include <string>

namespace score::gang {

// Returns why no job with this request is parked; empty if they may be.
[[nodiscard]] std::string why_never_parked(const ClusterConfig& config,
                                           const base::ResourceRequest& request);

// Returns why the placed job must not be parked now; empty if it may be. The memory of steps
// belongs to their job, but they are attempts of their own.
[[nodiscard]] std::string why_not_parked(const Tables& tables, const Job& job);

}  // namespace score::gang
