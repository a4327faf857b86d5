// Runs the user's command on a cluster.
#pragma once

#include "scout/cluster/layout.hpp"

#include <sys/types.h>

namespace score::scout {

// Starts the command in our process group and session, with our descriptors, and with SCORED_SERVER
// and PATH set for the cluster. It gets SIGKILL when this process ends. If it cannot be executed,
// it prints why and its exit code is 126 or 127. Returns its pid, or -1 if fork failed.
pid_t start_command(const Layout& layout, const std::vector<std::string>& command);

// Returns the exit code as shells compute it from waitpid's status.
int shell_code(int wait_status);

}  // namespace score::scout
