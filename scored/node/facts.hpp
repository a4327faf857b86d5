// What this node tells `score doctor` about its host.
#pragma once

#include "proto/client.pb.h"
#include "scored/node/attempts/job_cgroups.hpp"
#include "scored/node/config.hpp"
#include "scored/node/switch/switcher.hpp"

namespace score::node {

// How the node switches gangs, for its hello.
[[nodiscard]] wire::Switching describe_switching(bool has_cgroups, SwitchPriority priority);

// Some system calls; cgroups null: there are none.
[[nodiscard]] wire::HostFacts collect_facts(const NodeConfig& config, const JobCgroups* cgroups);

}  // namespace score::node
