#pragma once

// B: born in the tasks' cgroup and session, it forks the tasks and goes.

namespace score::shepherd {

// Serves the socket to the shepherd until the last task is forked; the program's exit status.
int run_spawner(int socket);

}  // namespace score::shepherd
