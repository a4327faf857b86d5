// Translates the words of scontrol update to those of score change. Pure.
#pragma once

#include "base/result.hpp"

#include <span>
#include <string>
#include <vector>

namespace score::scout::slurm {

struct UpdateWords {
  std::vector<std::string> jobs;     // as typed; not empty
  std::vector<std::string> changes;  // "wall-time=3600s"; not empty
};

// Reads words such as "JobId=7" and "TimeLimit=60". Names may be in any case. Errors: Malformed,
// Unsupported, which name the word.
Result<UpdateWords> read_update(std::span<const std::string> words);

}  // namespace score::scout::slurm
