// Continues the tasks of every job of a node, regardless of which process froze them and whether it
// still runs.
#pragma once

#include <sys/types.h>

namespace score::thaw {

// Holds descriptors of the places of the jobs' directories; -1: none.
struct Places {
  int cgroups = -1;  // cgroup2; contains the job_ATTEMPT directories
  // The directory in the version 1 hierarchy of the cpu controller. The daemon makes a directory
  // there for each attempt whose tasks join it, named by the inode of the cgroup2 directory, so
  // that those of all nodes of a host are siblings: scored/jobs/scored_<inode>_job_<attempt>.
  int cpu = -1;
};

// Opens the places. `path` is the cgroup2 directory. If it is null, it is that of this process,
// outside its leaf `daemon` (into which a node daemon moves) or `.control` (where systemd runs
// ExecStopPost=). Returns false and sets errno if there is none (ENOTSUP: not in a cgroup2 mount).
bool open_places(const char* path, Places& places);

// Opens the cgroup in which systemd runs the node daemon's jobs, that of scored-jobs.service, next
// to the one of this process. Returns false if there is none.
bool open_jobs_unit(Places& places);

// Thaws every job there, and restores normal priority. Returns the number of jobs that it thawed or
// tried to thaw.
int thaw_cgroups(const Places& places);

}  // namespace score::thaw
