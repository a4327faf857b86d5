// Manages the cgroups of this node's attempts: <root>/job_<attempt>/{shepherd,tasks,helpers}. If
// the version 2 tree has no cpu controller, the tasks are also in a separate directory of the
// version 1 hierarchy (base/os/cpu_cgroup.hpp).
//
// Helpers are programs of this project that run as the user and must answer while the tasks are
// frozen. They have the limits of the tasks: in version 1 they share the tasks' directories, in
// version 2 the same numbers hold for their own directory.
#pragma once

#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::node {

// Returns the cgroup2 directory below which a node daemon of this host may make its jobs' cgroups,
// or "" if there is none. Under systemd this is the directory of scored-jobs.service
// (find_jobs_unit()). Its process is moved into a leaf (`keeper`), because a directory that enables
// controllers must not contain processes. Without systemd it is the daemon's own directory, if the
// daemon may write there; the daemon then moves itself into a leaf (`daemon`).
std::string find_cgroup_root();

// Names the hierarchy in which an attempt's cpu.idle is. With cpu.idle an attempt can fill, that
// is, run at idle priority.
enum class FillControl : std::uint8_t {
  None,      // attempts cannot fill
  Unified,   // <root>/job_<attempt>
  Version1,  // the attempt's directory in the version 1 hierarchy
};

struct FillPlace {
  FillControl control = FillControl::None;
  std::string job;      // prefix of the paths of the directories with cpu.idle; "" if None
  std::string why_not;  // the reason, if None
};

// Looks for cpu.idle. A controller is either in the version 1 hierarchy or in the version 2 tree.
// `version1` is the prefix of the attempts' directories in the version 1 hierarchy of `cpu`; "" if
// the host has none.
FillPlace find_fill_place(const std::string& root, const std::string& version1);

// Limits what an attempt may use on this node; 0 means no limit.
struct JobLimits {
  Bytes memory{0};
  std::uint32_t processes = 0;              // includes threads; of the tasks
  std::vector<std::uint32_t> processors{};  // the host's numbers; empty: all
  bool has_helpers = false;
};

// Describes where a controller limits attempts: in the version 2 tree or in a version 1 hierarchy.
struct LimitPlace {
  bool is_unified = false;
  std::string version1;  // prefix of the paths of the attempts' directories; "": not version 1

  [[nodiscard]] bool limits() const { return is_unified || !version1.empty(); }
};

// CgroupCounters is what the kernel has counted for the tasks of an attempt.
struct CgroupCounters {
  Duration cpu_user{0};
  Duration cpu_system{0};
  std::optional<Bytes> charged_peak{};  // with file cache; none without a memory controller
};

class JobCgroups {
 public:
  // `root` must exist. Errors: errno codes of writing below it; Unsupported if it is not in a
  // cgroup2 mount.
  static Result<JobCgroups> open(std::string root);

  [[nodiscard]] const std::string& root() const { return root_; }

  // Returns true if it can limit memory: the controller is delegated to the root, or its version 1
  // hierarchy is writable.
  [[nodiscard]] bool limits_memory() const { return memory_.limits(); }

  // Returns true if it can confine tasks to the processors of their job. Otherwise they are only
  // bound to them.
  [[nodiscard]] bool limits_processors() const { return processors_.limits(); }

  [[nodiscard]] FillControl fill_control() const { return fill_.control; }

  // Returns the reason if fill_control() is None.
  [[nodiscard]] const std::string& why_no_fill() const { return fill_.why_not; }

  // Returns "" if there is no cpu.idle.
  [[nodiscard]] std::string idle_path(AttemptId attempt) const;

  // Lets the tasks have only the processor time that others leave. Does nothing without cpu.idle.
  [[nodiscard]] Status set_idle_priority(AttemptId attempt) const;

  // Makes an attempt's directories and sets the limits for which there are controllers. Existing
  // directories are not an error.
  [[nodiscard]] Status make(AttemptId attempt, const JobLimits& limits) const;
  // Opens its directories in the order that the launcher expects: shepherd, tasks, helpers (again
  // the tasks if it has none), version 1 hierarchies. Errors: errno codes.
  [[nodiscard]] Result<std::vector<UniqueFd>> open_places(AttemptId attempt) const;
  [[nodiscard]] std::string tasks_path(AttemptId attempt) const;
  [[nodiscard]] std::string helpers_path(AttemptId attempt) const;
  // Sends SIGKILL to the tasks, frozen or not. The shepherd and the helpers keep running.
  [[nodiscard]] Status kill_tasks(AttemptId attempt) const;
  // Sends SIGKILL to everything in it.
  [[nodiscard]] Status kill_all(AttemptId attempt) const;
  // Fails with EBUSY while a process in it is still ending. A directory that no longer exists is
  // not an error.
  [[nodiscard]] Status remove(AttemptId attempt) const;
  // Returns every attempt that has a directory.
  [[nodiscard]] std::vector<AttemptId> list() const;
  // Thaws all attempts and restores normal priority. The daemon calls it first at its start.
  void thaw_all() const;
  // Returns how many of its tasks' processes the kernel has killed because memory was exhausted,
  // that of its limit or of the node. Returns 0 without a memory controller.
  [[nodiscard]] std::uint32_t oom_kills(AttemptId attempt) const;
  // Counters that cannot be read are 0.
  [[nodiscard]] CgroupCounters counters(AttemptId attempt) const;
  // Returns the tasks' memory now, without file cache; 0 without a memory controller.
  [[nodiscard]] Bytes memory(AttemptId attempt) const;

 private:
  JobCgroups(std::string root, FillPlace fill) : root_(std::move(root)), fill_(std::move(fill)) {}

  [[nodiscard]] LimitPlace find_limit_place(const std::string& controller) const;
  [[nodiscard]] Status set_weight(AttemptId attempt) const;
  [[nodiscard]] Status set_limits(AttemptId attempt, const JobLimits& limits) const;
  [[nodiscard]] Status set_processors(AttemptId attempt, const JobLimits& limits) const;
  // Returns the directory that holds a controller's files for the attempt's tasks.
  [[nodiscard]] std::string limit_path(const LimitPlace& place, AttemptId attempt) const;
  // Writes one of these files, for the helpers too.
  [[nodiscard]] Status write_limit(const LimitPlace& place, AttemptId attempt,
                                   std::string_view file, std::string_view text) const;
  [[nodiscard]] bool has_helpers(AttemptId attempt) const;
  // Returns the attempt's directories in version 1 hierarchies.
  [[nodiscard]] std::vector<std::string> version1_paths(AttemptId attempt) const;

  [[nodiscard]] std::string path(AttemptId attempt) const;

  std::string root_;
  FillPlace fill_;
  LimitPlace memory_;
  LimitPlace processes_;
  LimitPlace processors_;
};

// Returns the number after `key` and a space at the start of a line, as in memory.stat; 0 if it is
// missing.
std::uint64_t parse_counter(std::string_view text, std::string_view key);

}  // namespace score::node
