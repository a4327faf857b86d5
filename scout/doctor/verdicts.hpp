// Evaluates the facts for `score doctor`: facts in, findings out.
#pragma once

#include "scout/doctor/evidence.hpp"
#include "scout/doctor/finding.hpp"
#include "scout/doctor/remedies.hpp"

#include <vector>

namespace score::scout {

// Returns the findings in the order of the table of checks, from causes to effects; at least one
// finding per check.
std::vector<Finding> judge(const Evidence& evidence);

struct FileOwner {
  std::string node;  // empty: the head
  std::uint32_t user = 0;
  const Remedies& remedies;
};

// Checks mode and owner of one file of a daemon.
void judge_file(const FileOwner& owner, const wire::FileFact& file, Findings& found);

// Returns the distance between a release and the head's: 0 for the same patch series, 1 for one
// minor number, 2 for more or if one of them is not MAJOR.MINOR.PATCH.
int release_distance(std::string_view one, std::string_view other);

}  // namespace score::scout
