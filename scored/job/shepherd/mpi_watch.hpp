#pragma once
// Finds problems of a running job's MPI library that users cannot see. If it does not use PM
// although --net=pm was given, they are warned. If it was not offered the process management that
// it needs, each rank runs alone and computes a wrong result, so the job is ended. The job's first
// node checks its first rank on behalf of all.

#include "scored/job/plan/plan.hpp"
#include "scored/job/tasks/event_loop.hpp"
#include "scored/job/tasks/task_table.hpp"

#include <functional>
#include <string>

namespace score::shepherd {

class MpiWatch {
 public:
  using Note = std::function<void(std::uint32_t task, const std::string& text)>;

  using End = std::function<void(const std::string& why)>;

  // All arguments must outlive this object. end: ends the job.
  MpiWatch(EventLoop& loop, const Plan& plan, const TaskTable& tasks, Note note, End end);

  // Call this when all tasks have a process.
  void tasks_started();
  // Call this when the task's MPI library has initialised, so it is loaded. The library may be in
  // any process that a script has started. Only the first task is checked.
  void initialised(std::uint32_t task);
  // Returns true if several processes of this task use MPI. A script may start one after the other.
  [[nodiscard]] bool has_several_mpis(std::uint32_t task) const;
  // Call this when the tasks have ended by themselves. has_served: some of them opened PM.
  void tasks_ended(bool has_served);

 private:
  [[nodiscard]] bool is_first_node() const { return plan_.prepare.node_index() == 0; }

  [[nodiscard]] bool wants_pm() const {
    return is_first_node() && plan_.spec.net() == wire::LaunchSpec::PM;
  }

  void check_unserved(std::size_t round);

  EventLoop& loop_;
  const Plan& plan_;
  const TaskTable& tasks_;
  Note note_;
  End end_;
  bool is_served_ = false;  // an MPI library has found its server
  bool has_checked_pm_ = false;
  bool has_objected_ = false;  // to an MPI library that cannot use PM
};

}  // namespace score::shepherd
