// Translates options of Slurm's sbatch, from #SBATCH lines or a command line, to those of scbatch.
// Pure.
#pragma once

#include "base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

struct SlurmOptions {
  std::vector<std::string> words;    // options of scbatch, "--name=value"
  std::vector<std::string> ignored;  // as written in the script
};

// Translates the options that have the same meaning here, and lists the others as ignored. A
// translated value that scbatch cannot parse is refused by scbatch itself. Errors: Malformed if a
// value is missing, or a time or a size cannot be parsed; Unsupported if the option requests a
// resource that nodes do not have by that name. `place` precedes an option in a message.
Result<SlurmOptions> from_slurm(const std::vector<std::string>& words,
                                std::string_view place = "#SBATCH ");

// Converts "30", "30:00", "1:30:00", "1-12", "1-12:30" or "1-12:30:00" to a form such as "5400s";
// empty means no limit. Errors: Malformed.
Result<std::string> slurm_time(std::string_view text);

}  // namespace score::scout
