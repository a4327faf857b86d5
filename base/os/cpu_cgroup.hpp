#pragma once
// The version 1 hierarchy of the `cpu` controller, for hosts whose version 2 tree does not have
// that controller: processor priorities of jobs are then set there. Priority is relative to
// siblings, so the jobs of all nodes of a host lie side by side, below the cgroup of their daemon:
//   scored/jobs/scored_<inode of the node's cgroup2 directory>_job_<attempt>
// Two levels, `scored` with the weight of the host's nodes and in it `jobs` of the least weight,
// keep the weight of the whole constant, without which tasks that sleep often can starve a machine
// (ADR 0103). In the hierarchies of `memory`, `pids` and `cpuset`, which limit jobs, the jobs'
// directories lie directly below the daemon's cgroup. scored/thaw/thaw.cpp makes the same names.
// Errors are errno codes with the path as context.

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace score::inline base {

// Mount point of the hierarchy in the text of /proc/<pid>/mountinfo. Errors: NotFound.
[[nodiscard]] Result<std::string> parse_cpu_mount(std::string_view mountinfo,
                                                  std::string_view controller = "cpu");
// Path below it in the text of /proc/<pid>/cgroup: of line "1:cpu,cpuacct:/path". Errors: NotFound.
[[nodiscard]] Result<std::string> parse_cpu_path(std::string_view proc_cgroup,
                                                 std::string_view controller = "cpu");
// Directory of this process's own cgroup there.
[[nodiscard]] Result<std::string> own_cpu_cgroup(std::string_view controller = "cpu");

// Makes the directory in which the jobs' directories of the `cpu` hierarchy lie and returns its
// path. A call for a directory that exists changes nothing.
[[nodiscard]] Result<std::string> make_cpu_jobs_place();

// Enters the node of this cgroup2 directory into the place that make_cpu_jobs_place() made, which
// then stays until remove_cpu_jobs(root), and gives the jobs of the host as many times the weight
// of one service as there are nodes.
[[nodiscard]] Status enter_cpu_jobs_place(const std::string& root);

// How the names of the jobs of one node begin: "scored_7_job_". `root`: the node's cgroup2
// directory.
[[nodiscard]] Result<std::string> cpu_job_prefix(const std::string& root);
// Removes what remains of the jobs of the node of this cgroup2 directory, and of those directly
// below it, in the hierarchies of all these controllers. To be called while it still exists.
// Directories in use remain; without a hierarchy nothing happens. The directory that all nodes
// share goes with the last of them.
void remove_cpu_jobs(const std::string& root);

}  // namespace score::inline base
