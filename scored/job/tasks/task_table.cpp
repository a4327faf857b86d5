#include "scored/job/tasks/task_table.hpp"

#include "base/time.hpp"

#include <algorithm>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// The spawner does not reap, so a pid that it reports belongs to its task until the spawner has
// ended. The process is then our child, and the pid belongs to its task until it is reaped here.
// For this reason a signal to the pid cannot hit a different process, and a pid found by waitid can
// be looked up.

namespace score::shepherd {

namespace {

// waitid(2) of the kernel has a fifth argument, which glibc's function lacks.
bool reap_one(siginfo_t& info, rusage& used) {
  return syscall(SYS_waitid, P_ALL, 0, &info, WEXITED | WNOHANG, &used) == 0 && info.si_pid != 0;
}

base::Duration time_of(const timeval& time) {
  return std::chrono::seconds{time.tv_sec} + std::chrono::microseconds{time.tv_usec};
}

// Converts the counters of getrusage(2), which has memory in KiB and blocks of 512 bytes.
base::Usage usage_of(const rusage& used) {
  const auto count = [](long number) { return static_cast<std::uint64_t>(std::max(number, 0L)); };
  base::Usage usage;
  usage.cpu_user = time_of(used.ru_utime);
  usage.cpu_system = time_of(used.ru_stime);
  usage.memory_peak = base::Bytes(count(used.ru_maxrss) * 1024);
  usage.page_faults = count(used.ru_minflt) + count(used.ru_majflt);
  usage.read = base::Bytes(count(used.ru_inblock) * 512);
  usage.write = base::Bytes(count(used.ru_oublock) * 512);
  usage.switches_voluntary = count(used.ru_nvcsw);
  usage.switches_involuntary = count(used.ru_nivcsw);
  return usage;
}

}  // namespace

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
    rusage used{};
    if (!reap_one(info, used)) return;
    const bool exited = info.si_code == CLD_EXITED;
    reaped(info.si_pid, exited ? info.si_status : 0, exited ? 0 : info.si_status, usage_of(used));
  }
}

void TaskTable::reaped(pid_t pid, int code, int signal, const base::Usage& usage) {
  const auto at = running_.find(pid);
  if (pid != parent_) add(usage, at != running_.end());
  if (at == running_.end()) return;  // the spawner, or a process that a task left behind
  const std::uint32_t task = at->second;
  running_.erase(at);
  end(task, code, signal);
}

// The tasks run at the same time, so their memory is added up. Processes that they left behind may
// have run one after the other: the largest one counts.
void TaskTable::add(const base::Usage& usage, bool is_task) {
  const base::Bytes peak = is_task ? usage_.memory_peak + usage.memory_peak
                                   : std::max(usage_.memory_peak, usage.memory_peak);
  usage_ += usage;
  usage_.memory_peak = peak;
  usage_.memory_peak_sum = peak;
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

std::vector<pid_t> TaskTable::running_pids() const {
  std::vector<pid_t> pids;
  for (const Task& task : tasks_) pids.push_back(task.ended ? 0 : task.pid);
  return pids;
}

std::vector<std::int64_t> TaskTable::pids() const {
  std::vector<std::int64_t> pids;
  for (const Task& task : tasks_) pids.push_back(task.pid);
  return pids;
}

}  // namespace score::shepherd
