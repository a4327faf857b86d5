// The cgroups of this node's attempts: <root>/job_<attempt>/{shepherd,tasks}. Where the version 2
// tree has no cpu controller, the tasks are also in a directory of their own of the version 1
// hierarchy (base/os/cpu_cgroup.hpp).
#pragma once

#include "base/ids.hpp"
#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace score::node {

// The cgroup2 directory below which a node daemon of this host may make its jobs' cgroups. "" if
// there is none. Under systemd it is that of scored-jobs.service (find_jobs_unit()), whose process
// the daemon moves into a leaf (`keeper`), for where controllers are enabled no process may be in
// between. Elsewhere it is the daemon's own one, if it may write there; then it moves itself into a
// leaf (`daemon`).
std::string find_cgroup_root();

// Where an attempt's cpu.idle lies, which lets it fill: run at idle priority.
enum class FillControl : std::uint8_t {
  None,      // attempts cannot fill
  Unified,   // <root>/job_<attempt>
  Version1,  // the attempt's directory in the version 1 hierarchy
};

struct FillPlace {
  FillControl control = FillControl::None;
  std::string job;      // how the paths of the directories with cpu.idle begin; "" if None
  std::string why_not;  // if None
};

// A controller is either in the version 1 hierarchy or in the version 2 tree. `version1`: how the
// paths of the attempts' directories would begin there; "": the host has no such hierarchy of
// `cpu`.
FillPlace find_fill_place(const std::string& root, const std::string& version1);

// What an attempt may use on this node; 0: as much as there is.
struct JobLimits {
  Bytes memory{0};
  std::uint32_t processes = 0;              // and threads, of the tasks
  std::vector<std::uint32_t> processors{};  // of the host, that the tasks run on; empty: all
};

// Where attempts are limited by a controller: in the version 2 tree or, if the host has it there,
// in a version 1 hierarchy.
struct LimitPlace {
  bool is_unified = false;
  std::string version1;  // how the paths of the attempts' directories begin there; "": not there

  [[nodiscard]] bool limits() const { return is_unified || !version1.empty(); }
};

class JobCgroups {
 public:
  // `root` exists. Errors: errno of writing below it, Unsupported: not in a cgroup2 mount.
  static Result<JobCgroups> open(std::string root);

  [[nodiscard]] const std::string& root() const { return root_; }

  // Can it limit memory? The controller is delegated to the root, or its version 1 hierarchy may be
  // written.
  [[nodiscard]] bool limits_memory() const { return memory_.limits(); }

  // Can it keep tasks on the processors of their job? Without, they are only bound to them.
  [[nodiscard]] bool limits_processors() const { return processors_.limits(); }

  [[nodiscard]] FillControl fill_control() const { return fill_.control; }

  // If it is None: why.
  [[nodiscard]] const std::string& why_no_fill() const { return fill_.why_not; }

  // "" if there is none.
  [[nodiscard]] std::string idle_path(AttemptId attempt) const;

  // Makes an attempt's directories, with its limits where there are controllers for them. Those
  // that exist are fine.
  [[nodiscard]] Status make(AttemptId attempt, const JobLimits& limits) const;
  // Its directories as the launcher wants them: of the shepherd, of the tasks, and those of version
  // 1 hierarchies. Errors: errno codes.
  [[nodiscard]] Result<std::vector<UniqueFd>> open_places(AttemptId attempt) const;
  [[nodiscard]] std::string tasks_path(AttemptId attempt) const;
  // SIGKILL to the tasks, frozen or not; the shepherd goes on.
  [[nodiscard]] Status kill_tasks(AttemptId attempt) const;
  // ... and to the shepherd too.
  [[nodiscard]] Status kill_all(AttemptId attempt) const;
  // EBUSY while something in it still dies. What is gone already is fine.
  [[nodiscard]] Status remove(AttemptId attempt) const;
  // Every attempt that has a directory.
  [[nodiscard]] std::vector<AttemptId> list() const;
  // Thaws whatever is there, at normal priority: at the start, before anything else.
  void thaw_all() const;
  // Processes of its tasks that the kernel has killed because memory was exhausted: its limit's, or
  // the node's. 0 without a memory controller.
  [[nodiscard]] std::uint32_t oom_kills(AttemptId attempt) const;

 private:
  JobCgroups(std::string root, FillPlace fill) : root_(std::move(root)), fill_(std::move(fill)) {}

  [[nodiscard]] LimitPlace find_limit_place(const std::string& controller) const;
  [[nodiscard]] Status set_limits(AttemptId attempt, const JobLimits& limits) const;
  [[nodiscard]] Status set_processors(AttemptId attempt, const JobLimits& limits) const;
  // Of a controller's files for the attempt's tasks.
  [[nodiscard]] std::string limit_path(const LimitPlace& place, AttemptId attempt) const;
  // The attempt's directories in version 1 hierarchies.
  [[nodiscard]] std::vector<std::string> version1_paths(AttemptId attempt) const;

  [[nodiscard]] std::string path(AttemptId attempt) const;

  std::string root_;
  FillPlace fill_;
  LimitPlace memory_;
  LimitPlace processes_;
  LimitPlace processors_;
};

// The counter `oom_kill` in the text of memory.events, or of memory.oom_control of version 1; 0 if
// it is not there.
std::uint64_t parse_oom_kills(std::string_view memory_events);

}  // namespace score::node
