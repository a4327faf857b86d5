// The command that a virtual cluster is booted for.
#pragma once

#include "scout/virtual/layout.hpp"

#include <sys/types.h>

namespace score::scout {

// Starts it in our process group and session, with our descriptors, and with SCORED_SERVER and PATH
// set so that it finds the cluster and its commands. It gets SIGKILL when this process ends. If it
// cannot be executed its exit code is 126 or 127, said on stderr. Gives its pid; -1: fork failed.
pid_t start_command(const Layout& layout, const std::vector<std::string>& command);

// As shells have it, from waitpid's status.
int shell_code(int wait_status);

}  // namespace score::scout
