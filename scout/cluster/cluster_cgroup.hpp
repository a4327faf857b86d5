// The cgroup of a cluster: one directory, in it one per node.
#pragma once

#include "base/result.hpp"
#include "scout/cluster/layout.hpp"

#include <string>
#include <vector>

namespace score::scout {

// Makes the cgroup below our own one (root: below the mount), notes its path in the cluster's
// directory for the reaper, and sets layout.cgroup. Where we may make none, or may not move
// processes into it, layout.cgroup stays empty and the daemons stop and continue processes by
// signals: no error.
Status make_cluster_cgroup(Layout& layout, const std::vector<std::string>& nodes);

}  // namespace score::scout
