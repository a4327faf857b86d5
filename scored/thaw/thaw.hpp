// Lets the tasks of every job of a node go on, whatever froze them and whoever is gone since.
#pragma once

#include <sys/types.h>

namespace score::thaw {

// Where the job_ATTEMPT directories are; -1: none.
struct Places {
  int cgroups = -1;  // cgroup2
  // The version 1 hierarchy of the cpu controller. The daemon makes a directory there for each
  // attempt whose tasks join it, named by the inode of the cgroup2 directory, so that those of all
  // nodes of a host are siblings: scored/jobs/scored_<inode>_job_<attempt>.
  int cpu = -1;
};

// `path`: the cgroup2 directory; null: the one that the process is in, out of its leaf `daemon`
// (into which a node daemon moves) or `.control` (where systemd runs ExecStopPost=). False, with
// errno: there is none (ENOTSUP: not in a cgroup2 mount).
bool open_places(const char* path, Places& places);

// Where systemd runs the node daemon: the cgroup of scored-jobs.service, beside the one of this
// process. False: there is none.
bool open_jobs_unit(Places& places);

// Thaws every job there, at normal priority. How many it thawed or tried to.
int thaw_cgroups(const Places& places);

}  // namespace score::thaw
