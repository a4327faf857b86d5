// Killing all of an attempt where there are no cgroups: the one-user cluster without cgroup2.
#pragma once

#include <optional>
#include <sys/types.h>
#include <vector>

namespace score::node {

// Every living descendant of `pid`, itself not. The shepherd is a subreaper, so nothing that a task
// forks can leave the tree while it lives.
std::vector<pid_t> descendants(pid_t pid);

// It has begun to end or is not there any more: a signal changes nothing of how it ends.
bool is_ending(pid_t pid);

// Returns the signal that ended the process of this pidfd; 0: it exited. nullopt: it has not been
// reaped, or the kernel (before 6.15) does not report it.
std::optional<int> signal_that_ended(int pidfd);

// SIGKILL to the group and to all descendants of `shepherd` (0: unknown). How many descendants it
// found: what they forked meanwhile needs another call.
std::size_t kill_tree(pid_t shepherd, pid_t group);

}  // namespace score::node
