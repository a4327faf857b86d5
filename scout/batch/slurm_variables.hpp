// The variables with Slurm's names that only the submitting process knows.
#pragma once

#include <string>
#include <vector>

namespace score::scout {

struct SlurmSubmission {
  bool is_step = false;     // keeps the variables of its job
  bool is_program = false;  // not a batch script
  std::string array{};      // "0-99%8"; empty: not an array
};

// Replaces, in "NAME=value" entries, the variables of a job from which this one is submitted.
void set_slurm_variables(std::vector<std::string>& entries, const SlurmSubmission& submission);

}  // namespace score::scout
