// Collects the facts about this host that the node reports to `score doctor`.
#pragma once

#include "proto/client.pb.h"
#include "scored/node/attempts/job_cgroups.hpp"
#include "scored/node/config.hpp"
#include "scored/node/switch/switcher.hpp"

namespace score::node {

// Describes how the node switches gangs, for its hello.
[[nodiscard]] wire::Switching describe_switching(bool has_cgroups, SwitchPriority priority);

// Makes some system calls. `cgroups` is null if there are none.
[[nodiscard]] wire::HostFacts collect_facts(const NodeConfig& config, const JobCgroups* cgroups);

// Logs how jobs are kept on their cores, and how they may use idle time.
void report_core_control(const NodeConfig& config, const JobCgroups* cgroups);

}  // namespace score::node
