#pragma once
// Builds a task's environment from the job's variables and those that describe the task's place.
// This module is pure.

#include "scored/job/plan/plan.hpp"

#include <string>
#include <vector>

namespace score::shepherd {

// A task finds its PMI server at this descriptor.
inline constexpr int kTaskPmiFd = 3;

// Returns the variables that the shepherd sets for one task, as "NAME=value". These are SCORE_*,
// PWD, PMI_* if the plan wants PMI, PM_NETWORK_FD, SLURM_* look-alikes if they were requested, and
// OMP_NUM_THREADS if the job has several cpus per task and left it unset.
std::vector<std::string> own_variables(const Plan& plan, std::uint32_t task);

// Returns true if this variable of the job's environment is dropped. Variables left there by a
// different launcher or an outer job would describe a second place for the task: SCORE_* and
// SLURM_* that are set here, PMI_* and PMIX_*.
bool is_replaced(std::string_view variable, const std::vector<std::string>& own);

}  // namespace score::shepherd
