// Letting everything go on: what the launcher does when the node daemon is gone.
#pragma once

#include <cstdint>
#include <sys/types.h>

namespace score::launcher {

// Opens the directory that holds the job_ATTEMPT directories; it must be of a cgroup2 mount. The
// descriptor, or -1 with errno (ENOTSUP: no cgroup2).
int open_cgroup_root(const char* path);

// The same for the cgroup2 directory that the process is in; out of its leaf `daemon` (into which a
// node daemon moves) if it is there.
int open_cgroup_of(pid_t pid);

// The directory of that process in the version 1 hierarchy of the cpu controller. Below it the
// daemon makes one per attempt whose tasks join it, named by the inode of the cgroup root, so that
// the directories of all nodes of a host are siblings: scored_<inode>_job_<attempt>. The
// descriptor, or -1.
int open_cpu_root_of(pid_t pid);
// The file `tasks` of an attempt's directory there, to be written to; -1 with errno.
int open_cpu_tasks(int cpu_root, int cgroup_root, std::uint64_t attempt);

// Thaws every job below, at normal priority. How many it thawed or tried to. cpu_root < 0: no job
// has a directory there.
int thaw_cgroups(int root, int cpu_root);

}  // namespace score::launcher
