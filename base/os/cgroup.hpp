#pragma once
// Control groups of version 2, as far as jobs need them: find the mount, make a directory for a
// job, freeze and thaw it through a descriptor that stays open, kill all in it, remove it.
// Asio-free: the launcher uses it as root. Errors are errno codes with the path as context.

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace score::inline base {

// Mount point of cgroup2 in the text of /proc/<pid>/mountinfo (proc(5)), octal escapes undone.
// Beside version 1 controllers it is usually /sys/fs/cgroup/unified, else /sys/fs/cgroup. With
// several the first whose root is "/" wins, else the first. Errors: NotFound; lines that do not
// parse are skipped.
[[nodiscard]] Result<std::string> parse_cgroup2_mount(std::string_view mountinfo);
// The same of this process.
[[nodiscard]] Result<std::string> find_cgroup2_mount();

// Path below the mount of a process in the text of /proc/<pid>/cgroup: of line "0::/path".
// Errors: NotFound.
[[nodiscard]] Result<std::string> parse_cgroup2_path(std::string_view proc_cgroup);
// Directory of this process's own cgroup: mount point and path.
[[nodiscard]] Result<std::string> own_cgroup();

// Where systemd runs the node daemon of this host, the cgroup below which it has its jobs: of
// scored-jobs.service, beside the own cgroup. Errors: NotFound: there is no such unit, so the jobs
// are below the own one.
[[nodiscard]] Result<std::string> find_jobs_unit();
[[nodiscard]] Result<std::string> find_jobs_unit(const std::string& own);
[[nodiscard]] bool is_jobs_unit(std::string_view cgroup);

// What cgroup.events says. Keys that are missing are false.
struct CgroupEvents {
  bool populated = false;  // a live process is in it or below
  bool frozen = false;     // everything in it has stopped
};

[[nodiscard]] CgroupEvents parse_cgroup_events(std::string_view text);

// One job's cgroup. Moving it moves the open descriptors; destroying it leaves the directory.
class Cgroup {
 public:
  // Makes the directory (mode 0755; an existing one is fine) and opens it. The parent must exist.
  static Result<Cgroup> create(std::string path);
  // Opens what is there: after a restart.
  static Result<Cgroup> open(std::string path);

  [[nodiscard]] const std::string& path() const { return path_; }

  // For SpawnSpec::cgroup_fd. Owned by this object.
  [[nodiscard]] int directory_fd() const { return directory_.get(); }

  // cgroup.events, for poll(2) with POLLPRI: readable urgently on each change. Owned by this
  // object.
  [[nodiscard]] int events_fd() const { return events_.get(); }

  // Name of the directory below: "tasks" gives path()/tasks.
  [[nodiscard]] std::string child_path(std::string_view name) const;

  // One write(2) of one byte: the kernel stops or goes on asynchronously; events() shows when all
  // have stopped. Freezing what is frozen is harmless. Callable from the switcher's real-time
  // thread: allocates nothing if it succeeds.
  [[nodiscard]] Status freeze(bool on);
  // SIGKILL to everything in it and below, frozen or not (kernel 5.14). Errors: Unsupported.
  [[nodiscard]] Status kill();
  [[nodiscard]] Result<CgroupEvents> events() const;
  // Processes directly in it, at most `max` (more are left out).
  [[nodiscard]] Result<std::vector<pid_t>> processes(std::size_t max = 65'536) const;
  // Moves a process into it.
  [[nodiscard]] Status add(pid_t pid);
  // Microseconds of CPU used by it and all below (cpu.stat).
  [[nodiscard]] Result<std::uint64_t> cpu_usage_us() const;
  // Writes one control file below it: write("memory.max", "1073741824").
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

// Removes the directory and those below it; none may hold a process. A missing one is fine.
// Errors: EBUSY while something lives in it.
[[nodiscard]] Status remove_cgroup_tree(const std::string& path);

}  // namespace score::inline base
