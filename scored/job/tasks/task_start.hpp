#pragma once
// The last steps of a task before it becomes the user's program: descriptors, terminal, directory,
// limits, cores, environment, exec. Runs in the forked child.

#include "base/os/fd.hpp"
#include "scored/job/plan/plan.hpp"

#include <sched.h>
#include <span>
#include <string>
#include <sys/resource.h>
#include <utility>
#include <vector>

namespace score::shepherd {

class TaskStarter {
 public:
  // What all tasks share is worked out once, in the job's directory, which this enters. The plan
  // must outlive the starter. Errors: of the checks, which the shepherd passed shortly before.
  static base::Result<TaskStarter> create(const Plan& plan);

  // stdin, stdout, stderr, and PMI and the network's broker if the job wants them.
  [[nodiscard]] std::size_t descriptors_per_task() const {
    return 3U + (plan_->wants_pmi() ? 1U : 0U) + (plan_->wants_network() ? 1U : 0U);
  }

  // In the child. A failure is printed on the task's own stderr, in one line; exit code 126, 127
  // (not found) or 125 (before exec).
  [[noreturn]] void run(std::uint32_t task, std::span<const base::UniqueFd> fds) const;

 private:
  explicit TaskStarter(const Plan& plan) : plan_(&plan) {}

  [[noreturn]] void fail(std::uint32_t task, const char* what, int error, int exit_code) const;
  void place_descriptors(std::uint32_t task, std::span<const base::UniqueFd> fds) const;
  void leave_session(std::uint32_t task) const;
  void take_terminal(std::uint32_t task) const;
  void open_input(std::uint32_t task) const;
  void set_limits(std::uint32_t task) const;
  [[noreturn]] void execute(std::uint32_t task) const;

  const Plan* plan_;
  std::vector<std::string> paths_;  // [app]; empty where no task of this node runs it
  std::vector<std::pair<int, rlimit>> limits_;
  std::vector<cpu_set_t> cores_;  // [task]; empty: not bound
};

// The processors of each task ([task]): cpus_per_task of the job's each, or for cpu_bind = socket
// all of their sockets'. Tasks that share cores are split evenly, neighbours together. A confined
// job (the plan names its processors) has no others: a task that is not bound has all of them, and
// of sockets only those count. Without, core numbers count the processors that this process may
// use; empty: not bound.
std::vector<cpu_set_t> cores_of_tasks(const Plan& plan);

}  // namespace score::shepherd
