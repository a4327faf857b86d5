#pragma once

// The spawner (B) is started in the tasks' cgroup and session, forks the tasks and exits.

namespace score::shepherd {

// Serves the socket to the shepherd until the last task is forked. Returns the program's exit
// status.
int run_spawner(int socket);

}  // namespace score::shepherd
