// Ending processes for certain: by cgroup, by descent, and by what they hold open.
#pragma once

#include "base/time.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace score::scout {

// Every live process below `ancestor`, not itself.
std::vector<pid_t> descendants_of(pid_t ancestor);

// SIGKILL to everything below us until nothing is left, for at most `limit`. We must be the
// subreaper of what we started: what double-forks comes back to us. Gives what is still there.
std::vector<pid_t> kill_descendants(Duration limit);

// Kills all in the cgroup and below, waits until it is empty, removes it. A missing one is fine.
// False: something lives on in it.
bool clear_cgroup(const std::string& path);

// SIGKILL to every process of ours that was started for the cluster, is a task of its jobs, or
// holds a Unix socket in its directory, and to everything below those; for a cluster whose
// supervisor is dead.
void kill_users_of(const std::string& directory);

// 5 ms, between looks at something that has no descriptor to wait for.
void pause_briefly();

}  // namespace score::scout
