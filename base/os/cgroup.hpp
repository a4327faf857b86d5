#pragma once
// Provides the operations on control groups of version 2 that jobs need: find the mount, make a
// directory for a job, freeze and thaw it through a descriptor that stays open, kill everything in
// it, and remove it. It is free of Asio, because the launcher uses it as root. Errors are errno
// codes with the path as context.

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace score::inline base {

// Returns the mount point of cgroup2 from the text of /proc/<pid>/mountinfo (proc(5)), with octal
// escapes decoded. Next to version 1 controllers it is usually /sys/fs/cgroup/unified, otherwise
// /sys/fs/cgroup. Of several mounts the first one whose root is "/" is chosen, else the first.
// Lines that do not parse are skipped. Errors: NotFound.
[[nodiscard]] Result<std::string> parse_cgroup2_mount(std::string_view mountinfo);
// Returns the mount point as this process sees it.
[[nodiscard]] Result<std::string> find_cgroup2_mount();

// Returns a process's path below the mount, from the line "0::/path" in the text of
// /proc/<pid>/cgroup. Errors: NotFound.
[[nodiscard]] Result<std::string> parse_cgroup2_path(std::string_view proc_cgroup);
// Returns the directory of this process's own cgroup: mount point and path.
[[nodiscard]] Result<std::string> own_cgroup();

// Returns the cgroup of scored-jobs.service, a sibling of the own cgroup, below which the node
// daemon has its jobs if systemd runs it. Errors: NotFound: there is no such unit, so the jobs are
// below the own cgroup.
[[nodiscard]] Result<std::string> find_jobs_unit();
[[nodiscard]] Result<std::string> find_jobs_unit(const std::string& own);
[[nodiscard]] bool is_jobs_unit(std::string_view cgroup);

// CgroupEvents holds the content of cgroup.events. Missing keys are false.
struct CgroupEvents {
  bool populated = false;  // it, or a cgroup below it, has a live process
  bool frozen = false;     // everything in it has stopped
};

[[nodiscard]] CgroupEvents parse_cgroup_events(std::string_view text);

// A Cgroup is one job's cgroup. Moving it moves the open descriptors; destroying it leaves the
// directory.
class Cgroup {
 public:
  // Makes the directory (mode 0755; an existing one is fine) and opens it. The parent must exist.
  static Result<Cgroup> create(std::string path);
  // Opens an existing directory, for use after a restart.
  static Result<Cgroup> open(std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }

  // Freezes or thaws with one write(2) of one byte. The kernel stops or continues the processes
  // asynchronously; events() shows when all have stopped. Freezing a frozen cgroup is harmless. The
  // switcher's real-time thread may call it, because it allocates nothing if it succeeds.
  [[nodiscard]] Status freeze(bool on);
  // Calls kill_cgroup().
  [[nodiscard]] Status kill();
  [[nodiscard]] Result<CgroupEvents> events() const;
  // Returns the processes directly in it, at most `max`; any more are left out.
  [[nodiscard]] Result<std::vector<pid_t>> processes(std::size_t max = 65'536) const;
  // Moves a process into it.
  [[nodiscard]] Status add(pid_t pid);
  // Writes one of its control files: write("memory.max", "1073741824").
  [[nodiscard]] Status write(std::string_view file, std::string_view text);

 private:
  Cgroup(std::string path, UniqueFd directory, UniqueFd freeze, UniqueFd events)
      : path_(std::move(path)),
        directory_(std::move(directory)),
        freeze_(std::move(freeze)),
        events_(std::move(events)) {}

  [[nodiscard]] Result<UniqueFd> open_control(std::string_view file, int flags) const;

  std::string path_;
  UniqueFd directory_;
  UniqueFd freeze_;
  UniqueFd events_;
};

// Sends SIGKILL to everything in it and below, frozen or not. Before Linux 5.14 a process that is
// forked meanwhile may escape: repeat it until the cgroup is empty.
[[nodiscard]] Status kill_cgroup(const std::string& path);

// Removes the directory and those below it; none may hold a process. A missing one is fine. Errors:
// EBUSY while a process lives in it.
[[nodiscard]] Status remove_cgroup_tree(const std::string& path);

}  // namespace score::inline base
