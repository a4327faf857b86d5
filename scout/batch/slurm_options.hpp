// Options of Slurm's sbatch, for #SBATCH lines, in words of scbatch. Pure.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

struct SlurmOptions {
  std::vector<std::string> words;    // of scbatch, "--name=value"
  std::vector<std::string> ignored;  // as they stood there
};

// Options that mean the same here are translated, the others are ignored by name. What scbatch
// cannot read of a translated value it refuses itself. Errors: Malformed: a value is missing, or a
// time or a size cannot be read; Unsupported: it asks for a resource that nodes do not have by that
// name.
Result<SlurmOptions> from_slurm(const std::vector<std::string>& words);

// "30", "30:00", "1:30:00", "1-12", "1-12:30" or "1-12:30:00" as "5400s"; empty: no limit. Errors:
// Malformed.
Result<std::string> slurm_time(std::string_view text);

}  // namespace score::scout
