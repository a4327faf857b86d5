// Finds the processes of an attempt by their parents, and kills them where there are no cgroups:
// the one-user cluster without cgroup2.
#pragma once

#include <optional>
#include <sys/types.h>
#include <vector>

namespace score::node {

// Returns the process ids here of processes below `above` that have these ids in a namespace of
// their own, in the same order; 0: there is none.
std::vector<pid_t> outer_ids(pid_t above, const std::vector<pid_t>& inner);

// Returns every living descendant of `pid`, without `pid` itself. The shepherd is a subreaper, so
// no process that a task forks can leave the tree while the shepherd lives.
std::vector<pid_t> descendants(pid_t pid);

// Returns the parent of `pid`, its parent, and so on; empty if the process does not exist.
std::vector<pid_t> ancestors(pid_t pid);

// Returns true if the process has begun to end or no longer exists, so that a signal does not
// change how it ends.
bool is_ending(pid_t pid);

// Returns the signal that ended the process of this pidfd, or 0 if it exited. Returns nullopt if it
// has not been reaped, or if the kernel (before 6.15) does not report it.
std::optional<int> signal_that_ended(int pidfd);

// Sends SIGKILL to the group and to all descendants of `shepherd` (0: unknown). Returns how many
// descendants it found. Processes that they have forked in the meantime need a further call.
std::size_t kill_tree(pid_t shepherd, pid_t group);

}  // namespace score::node
