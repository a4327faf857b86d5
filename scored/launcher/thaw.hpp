// Letting everything go on: what the launcher does when the node daemon is gone.
#pragma once

namespace score::launcher {

// Opens the directory that holds the job_ATTEMPT directories; it must be of a cgroup2 mount. The
// descriptor, or -1 with errno (ENOTSUP: no cgroup2).
int open_cgroup_root(const char* path);

// Thaws every job below. How many it thawed or tried to.
int thaw_cgroups(int root);

}  // namespace score::launcher
