#pragma once
// What users must know about the MPI library of a running job and cannot see: that it does not use
// PM although --net=pm was given. The job's first node looks for all.

#include "scored/job/plan/plan.hpp"
#include "scored/job/tasks/event_loop.hpp"
#include "scored/job/tasks/task_table.hpp"

#include <functional>
#include <string>

namespace score::shepherd {

class MpiWatch {
 public:
  using Note = std::function<void(std::uint32_t task, const std::string& text)>;

  // All must outlive it.
  MpiWatch(EventLoop& loop, const Plan& plan, const TaskTable& tasks, Note note);

  // The task's MPI library has begun, so that it is loaded; from any thread of control that a
  // script may have started. Only the first one is looked at.
  void initialised(std::uint32_t task);
  // The tasks have ended by themselves. has_served: some of them opened PM.
  void tasks_ended(bool has_served);

 private:
  [[nodiscard]] bool wants_pm() const {
    return plan_.prepare.node_index() == 0 && plan_.spec.net() == wire::LaunchSpec::PM;
  }

  EventLoop& loop_;
  const Plan& plan_;
  const TaskTable& tasks_;
  Note note_;
  bool has_looked_at_pm_ = false;
  bool has_objected_ = false;  // to an MPI library that cannot use PM
};

}  // namespace score::shepherd
