// Letting everything go on: what the launcher does when the node daemon is gone.
#pragma once

#include <sys/types.h>

namespace score::launcher {

// Opens the directory that holds the job_ATTEMPT directories; it must be of a cgroup2 mount. The
// descriptor, or -1 with errno (ENOTSUP: no cgroup2).
int open_cgroup_root(const char* path);

// The same for the cgroup2 directory that the process is in; out of its leaf `daemon` (into which a
// node daemon moves) if it is there.
int open_cgroup_of(pid_t pid);

// Thaws every job below. How many it thawed or tried to.
int thaw_cgroups(int root);

}  // namespace score::launcher
