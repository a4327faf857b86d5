#pragma once
// Explains to the user why a running job has its share of the time.

#include "gang/schedule/placer.hpp"
#include "gang/schedule/publisher.hpp"

#include <string>

namespace score::gang {

// Returns one line: the share, then what decides it (age, order of long jobs, weight). Returns an
// empty string for a job that is not in the timetable; its other reasons say why.
std::string share_reason(const Tables& tables, const Placer& placer, const Publisher& publisher,
                         const Job& job);

}  // namespace score::gang
