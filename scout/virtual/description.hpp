// Describes a virtual cluster for programs and for users.
#pragma once

#include "scout/cluster/daemons.hpp"
#include "scout/cluster/layout.hpp"
#include "scout/virtual/options.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

// Returns JSON of schema scored.virtual/1: directory, socket, address, and pid, log and restart
// command of every daemon. scout/JSON.md specifies it.
std::string cluster_json(const Layout& layout, const Daemons& daemons);

// Returns the lines that a user sees before the first prompt of a shell on the cluster: its size,
// the address of the dashboard (`page`, as the head gives it; may be empty), and commands to try.
std::vector<std::string> greeting_lines(const VirtualOptions& options, std::string_view page);

}  // namespace score::scout
