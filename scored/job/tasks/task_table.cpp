#include "scored/job/tasks/task_table.hpp"

#include "base/time.hpp"

#include <algorithm>
#include <signal.h>
#include <sys/wait.h>

// The spawner does not reap, so a pid that it reports belongs to its task until the spawner has
// ended. The process is then our child, and the pid belongs to its task until it is reaped here.
// For this reason a signal to the pid cannot hit a different process, and a pid found by waitid can
// be looked up.

namespace score::shepherd {

TaskTable::TaskTable(std::vector<std::uint32_t> ranks, Ended ended)
    : ranks_(std::move(ranks)), tasks_(ranks_.size()), ended_(std::move(ended)) {}

void TaskTable::set_process(std::uint32_t task, pid_t pid) {
  tasks_[task].pid = pid;
  running_[pid] = task;
}

void TaskTable::give_up(std::uint32_t task, int code, int signal) {
  if (tasks_[task].pid == 0 && !tasks_[task].ended) end(task, code, signal);
}

void TaskTable::end(std::uint32_t task, int code, int signal) {
  tasks_[task].ended = true;
  ++ended_count_;
  wire::TaskExit exit;
  exit.set_rank(ranks_[task]);
  exit.set_code(code);
  exit.set_signal(signal);
  exit.set_ended_ns(base::monotonic_now().time_since_epoch().count());
  exits_.push_back(exit);
  ended_(task, exit);
}

void TaskTable::reap() {
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) != 0 || info.si_pid == 0) return;
    const auto at = running_.find(info.si_pid);
    if (at == running_.end()) continue;  // the spawner, or a process that a task left behind
    const std::uint32_t task = at->second;
    running_.erase(at);
    const bool exited = info.si_code == CLD_EXITED;
    end(task, exited ? info.si_status : 0, exited ? 0 : info.si_status);
  }
}

void TaskTable::signal_all(int signal) {
  for (const Task& task : tasks_) {
    if (task.pid > 0 && !task.ended) kill(task.pid, signal);
  }
}

bool TaskTable::all_ended_well() const {
  const auto is_well = [](const wire::TaskExit& exit) {
    return exit.code() == 0 && exit.signal() == 0;
  };
  return all_ended() && std::ranges::all_of(exits_, is_well);
}

std::uint32_t TaskTable::started_count() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(tasks_, [](const Task& task) { return task.pid != 0; }));
}

std::vector<std::int64_t> TaskTable::started_pids() const {
  auto pids = this->pids();
  std::erase(pids, 0);
  return pids;
}

std::vector<std::int64_t> TaskTable::pids() const {
  std::vector<std::int64_t> pids;
  for (const Task& task : tasks_) pids.push_back(task.pid);
  return pids;
}

}  // namespace score::shepherd
