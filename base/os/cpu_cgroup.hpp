#pragma once
// This is the version 1 hierarchy of the `cpu` controller. It sets the processor priorities of jobs
// on hosts whose version 2 tree lacks that controller. Priority is relative to siblings, so the
// jobs of all nodes of a host lie side by side, below the cgroup of their daemon:
//  scored/jobs/scored_<inode of the node's cgroup2 directory>_job_<attempt>/inner
// `scored` has the weight of the host's nodes, and `jobs` in it has the least weight. Likewise a
// job has the default weight, and `inner`, which holds its tasks, the least. Two levels keep the
// weight of the outer one constant; otherwise tasks that sleep often can starve the machine or
// other jobs (ADR 0103). In the hierarchies of `memory`, `pids` and `cpuset`, which limit jobs, the
// jobs' directories lie directly below the daemon's cgroup. scored/privileged/thaw/thaw.cpp makes
// the same names. Errors are errno codes with the path as context.

#include "base/result.hpp"

#include <string>
#include <string_view>

namespace score::inline base {

// Returns the mount point of the hierarchy, from the text of /proc/<pid>/mountinfo. Errors:
// NotFound.
[[nodiscard]] Result<std::string> parse_cpu_mount(std::string_view mountinfo,
                                                  std::string_view controller = "cpu");
// Returns a process's path below it, from the line "1:cpu,cpuacct:/path" in the text of
// /proc/<pid>/cgroup. Errors: NotFound.
[[nodiscard]] Result<std::string> parse_cpu_path(std::string_view proc_cgroup,
                                                 std::string_view controller = "cpu");
// Returns the directory of this process's own cgroup in that hierarchy.
[[nodiscard]] Result<std::string> own_cpu_cgroup(std::string_view controller = "cpu");

// Makes the directory for the jobs' directories in the `cpu` hierarchy and returns its path. If the
// directory exists, the call changes nothing.
[[nodiscard]] Result<std::string> make_cpu_jobs_place();

// Enters the node of this cgroup2 directory into the place that make_cpu_jobs_place() made. The
// place then stays until remove_cpu_jobs(root). The jobs of the host get the weight of one service
// per node.
[[nodiscard]] Status enter_cpu_jobs_place(const std::string& root);

// Returns the common prefix of the names of one node's jobs: "scored_7_job_". `root` is the node's
// cgroup2 directory.
[[nodiscard]] Result<std::string> cpu_job_prefix(const std::string& root);
// Removes the remaining directories of the jobs of the node with this cgroup2 directory, and of the
// nodes directly below it, in the hierarchies of all these controllers. It must be called while
// `root` still exists. Directories in use remain; without a hierarchy nothing happens. The
// directory that all nodes share is removed with the last of them.
void remove_cpu_jobs(const std::string& root);

}  // namespace score::inline base
