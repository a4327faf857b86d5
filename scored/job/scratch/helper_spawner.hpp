#pragma once

// Runs the process C of helper_wire.hpp.

namespace score::shepherd {

// Starts programs for the shepherd until it closes the socket. Returns the program's exit status.
int run_helpers(int socket);

}  // namespace score::shepherd
