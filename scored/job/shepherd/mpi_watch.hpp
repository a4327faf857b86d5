#pragma once
// What users must know about the MPI library of a running job and cannot see: that it does not use
// PM although --net=pm was given, or that it was not offered the process management it needs, so
// that each rank runs alone. The job's first node looks, at its first rank, for all.

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

  // All tasks have a process.
  void tasks_started();
  // The task's MPI library has begun, so that it is loaded; from any thread of control that a
  // script may have started. Only the first one is looked at.
  void initialised(std::uint32_t task);
  // The tasks have ended by themselves. has_served: some of them opened PM.
  void tasks_ended(bool has_served);

 private:
  [[nodiscard]] bool is_first_node() const { return plan_.prepare.node_index() == 0; }

  [[nodiscard]] bool wants_pm() const {
    return is_first_node() && plan_.spec.net() == wire::LaunchSpec::PM;
  }

  void look_for_unserved(std::size_t look);

  EventLoop& loop_;
  const Plan& plan_;
  const TaskTable& tasks_;
  Note note_;
  bool is_served_ = false;  // an MPI library has found its server
  bool has_looked_at_pm_ = false;
  bool has_objected_ = false;  // to an MPI library that cannot use PM
};

}  // namespace score::shepherd
