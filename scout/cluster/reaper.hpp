// Ends all processes of a cluster. It finds them by cgroup, by descent, and by the sockets that
// they hold.
#pragma once

#include "base/time.hpp"

#include <string>
#include <sys/types.h>
#include <vector>

namespace score::scout {

// Returns every live descendant of `ancestor`, without `ancestor` itself.
std::vector<pid_t> descendants_of(pid_t ancestor);

// Sends SIGKILL to all our descendants until none is left, for at most `limit`. We must be their
// subreaper, so that none escapes by forking twice. Returns those that are left.
std::vector<pid_t> kill_descendants(Duration limit);

// Kills all processes in the cgroup and below it, waits until it is empty, and removes it. A
// missing cgroup is not an error. Returns false if processes remain in it.
bool clear_cgroup(const std::string& path);

// Sends SIGKILL to the processes of a cluster whose supervisor has ended, and to their descendants:
// every process of our user that was started for the cluster, is a task of its jobs, or holds a
// Unix socket in its directory.
void kill_users_of(const std::string& directory);

// Unmounts everything below the directory, such as volumes whose jobs were killed.
void unmount_below(const std::string& directory);

// Sleeps 5 ms between two polls of a state that has no descriptor to wait for.
void pause_briefly();

}  // namespace score::scout
