// Creates the cgroup of a cluster: one directory with one subdirectory per node.
#pragma once

#include "base/result.hpp"
#include "scout/cluster/layout.hpp"

#include <string>
#include <vector>

namespace score::scout {

// Creates the cgroup below our own (root: below the mount), writes its path to the cluster's
// directory for the reaper, and sets layout.cgroup. If we may not create one, or may not move
// processes into it, layout.cgroup stays empty and the daemons stop and continue processes by
// signals. That is not an error.
Status make_cluster_cgroup(Layout& layout, const std::vector<std::string>& nodes);

}  // namespace score::scout
