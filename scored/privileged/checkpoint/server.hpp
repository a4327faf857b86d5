// Serves the shepherd's orders to save and restore: see protocol.hpp.
#pragma once

namespace score::checkpoint {

// Serves the socket until the other side closes it or breaks the protocol. criu: the program.
// Returns the exit status.
int serve(int socket, char* criu);

}  // namespace score::checkpoint
