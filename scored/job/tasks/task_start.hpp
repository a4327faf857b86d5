#pragma once
// Does the last steps of a task before it becomes the user's program: descriptors, terminal,
// directory, limits, cores, environment, exec. It runs in the forked child.

#include "base/os/fd.hpp"
#include "scored/job/plan/plan.hpp"

#include <sched.h>
#include <span>
#include <string>
#include <sys/resource.h>
#include <utility>
#include <vector>

namespace score::shepherd {

class TaskExecutor {
 public:
  // Computes once the data that all tasks share. This enters the job's directory. The plan must
  // outlive the starter. Errors: as in the checks, which the shepherd passed shortly before.
  static base::Result<TaskExecutor> create(const Plan& plan);

  // Returns how many descriptors a task gets: stdin, stdout, stderr, and those of PMI and the
  // network's broker if the job needs them.
  [[nodiscard]] std::size_t descriptors_per_task() const {
    return 3U + (plan_->wants_pmi() ? 1U : 0U) + (plan_->wants_network() ? 1U : 0U);
  }

  // Runs the task in the child. A failure is printed in one line on the task's own stderr, with
  // exit code 126, 127 (not found) or 125 (before exec).
  [[noreturn]] void run(std::uint32_t task, std::span<const base::UniqueFd> fds) const;

 private:
  explicit TaskExecutor(const Plan& plan) : plan_(&plan) {}

  [[noreturn]] void fail(std::uint32_t task, const char* what, int error, int exit_code) const;
  void place_descriptors(std::uint32_t task, std::span<const base::UniqueFd> fds) const;
  void leave_session(std::uint32_t task) const;
  void take_terminal(std::uint32_t task) const;
  void open_input(std::uint32_t task) const;
  void set_limits(std::uint32_t task) const;
  [[noreturn]] void execute(std::uint32_t task) const;

  const Plan* plan_;
  std::vector<std::string> paths_;  // [app]; empty if no task of this node runs it
  std::vector<std::pair<int, rlimit>> limits_;
  std::vector<cpu_set_t> cores_;  // [task]; empty: not bound
};

// Returns the processors of each task ([task]): cpus_per_task of the job's for each, or with
// cpu_bind = socket all processors of their sockets. Tasks that share cores are split evenly, with
// neighbours together. A confined job (the plan names its processors) uses no others: a task that
// is not bound has all of the job's processors, and a socket includes only these. In other jobs,
// core numbers count the processors that this process may use. The result is empty if tasks are not
// bound.
std::vector<cpu_set_t> cores_of_tasks(const Plan& plan);

}  // namespace score::shepherd
