#pragma once
// Explains to the user why a job waits: all reasons, one line each.

#include "gang/schedule/placer.hpp"

#include <string>
#include <vector>

namespace score::gang {

// This is the reason of a running job that gets no slices.
inline constexpr const char* kDisplacedReason =
    "gets no time while a job of queue high or urgent uses its cores";

inline constexpr const char* kStoppedReason = "stopped while its stacks are read";

std::vector<std::string> wait_reasons(const Tables& tables, const Placer& placer, const Job& job);

}  // namespace score::gang
