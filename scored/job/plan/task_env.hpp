#pragma once
// A task's environment: the job's, and the variables that give the task its place. Pure.

#include "scored/job/plan/plan.hpp"

#include <string>
#include <vector>

namespace score::shepherd {

// The descriptor at which a task finds its PMI server.
inline constexpr int kTaskPmiFd = 3;

// Variables that the shepherd sets for one task, "NAME=value": SCORE_*, PWD, PMI_* if the plan
// wants PMI, PM_NETWORK_FD, SLURM_* look-alikes if asked, OMP_NUM_THREADS if the job has several
// cpus a task and left it unset.
std::vector<std::string> own_variables(const Plan& plan, std::uint32_t task);

// Is this variable of the job's environment dropped? Those that another launcher or an outer job
// left there would give a task two places: SCORE_* and SLURM_* that are set here, PMI_*, PMIX_*.
bool is_replaced(std::string_view variable, const std::vector<std::string>& own);

// SLURM_TASKS_PER_NODE: "2(x3),1".
std::string slurm_tasks_per_node(const Plan& plan);

}  // namespace score::shepherd
