// The description of a virtual cluster for programs.
#pragma once

#include "scout/cluster/daemons.hpp"
#include "scout/cluster/layout.hpp"

#include <string>

namespace score::scout {

// Schema scored.virtual/1: directory, socket, address, and pid, log and restart command of every
// daemon; see scout/JSON.md.
std::string cluster_json(const Layout& layout, const Daemons& daemons);

}  // namespace score::scout
