// Tested by test_mpi_on_pm.py: it takes real MPI libraries.
#include "scored/job/shepherd/mpi_watch.hpp"

#include "scored/job/plan/pm_choice.hpp"

#include <fmt/format.h>

#include <utility>

namespace score::shepherd {

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kLookAgain = 20ms;

}  // namespace

MpiWatch::MpiWatch(EventLoop& loop, const Plan& plan, const TaskTable& tasks, Note note)
    : loop_(loop), plan_(plan), tasks_(tasks), note_(std::move(note)) {}

void MpiWatch::initialised(std::uint32_t task) {
  if (!wants_pm() || has_looked_at_pm_ || task >= plan_.local_tasks()) return;
  const auto pid = tasks_.pids()[task];
  if (pid == 0) {  // the spawner's report of its pid comes later
    loop_.after(kLookAgain, [this, task] { initialised(task); });
    return;
  }
  has_looked_at_pm_ = true;
  if (is_linked_to_mpi(plan_)) return;  // pm_variables() has looked at it before the start
  const auto objection = ofi_objection_of_task(static_cast<pid_t>(pid));
  has_objected_ = !objection.empty();
  if (has_objected_) note_(task, fmt::format("--net=pm is not used: {}", objection));
}

void MpiWatch::tasks_ended(bool has_served) {
  if (!wants_pm() || plan_.spec.quiet() || has_served || has_objected_) return;
  note_(0, "--net=pm: no task here has opened PM; is the MPI library built on OFI (libfabric)?");
}

}  // namespace score::shepherd
