// The checks of `score doctor`: facts in, findings out.
#pragma once

#include "scout/doctor/evidence.hpp"
#include "scout/doctor/finding.hpp"

#include <vector>

namespace score::scout {

// In the order of the table of checks, from causes to effects; at least one finding per check.
std::vector<Finding> judge(const Evidence& evidence);

// One file of a daemon that runs as `user`: mode and owner. `where`: the node, empty: the head.
void judge_file(const std::string& where, std::uint32_t user, const wire::FileFact& file,
                Findings& found);

// How far a release is from the head's: 0 the same patch series, 1 one minor number; 2 more, or one
// of them is not MAJOR.MINOR.PATCH.
int release_distance(std::string_view one, std::string_view other);

}  // namespace score::scout
