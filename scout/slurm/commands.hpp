// The commands that are named as Slurm's, and the one that makes links to them.
#pragma once

#include "scout/session/command.hpp"

#include <array>
#include <string_view>

namespace score::scout {

inline constexpr std::array<std::string_view, 10> kSlurmCommands = {
    "sbatch", "srun",  "salloc",   "squeue",   "scancel",
    "sacct",  "sinfo", "scontrol", "sacctmgr", "sstat"};

int sbatch_main(const Invocation& invocation);
int srun_main(const Invocation& invocation);
int salloc_main(const Invocation& invocation);
int squeue_main(const Invocation& invocation);
int scancel_main(const Invocation& invocation);
int sacct_main(const Invocation& invocation);
int sinfo_main(const Invocation& invocation);
int scontrol_main(const Invocation& invocation);
int sacctmgr_main(const Invocation& invocation);
int sstat_main(const Invocation& invocation);
int slurm_commands_main(const Invocation& invocation);

}  // namespace score::scout
