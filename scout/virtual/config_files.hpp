// Writes the configuration and keys of a virtual cluster's daemons.
#pragma once

#include "base/result.hpp"
#include "scout/cluster/layout.hpp"
#include "scout/virtual/options.hpp"

namespace score::scout {

// Creates the directories, the key of the cluster, the key of each node, and every daemon's
// configuration file.
Status write_configuration(const Layout& layout, const VirtualOptions& options);

}  // namespace score::scout
