// A sleeping process costs one short pread. If its schedule has not changed since the last reading,
// nothing else has changed either, except that its state may have become a sleep. The stat file of
// a busy process, which is by far more expensive, is read at every second reading, and when the
// process falls asleep or wakes up. Its state, its memory and the split of its time are at most
// that old.
//
// stat gives CPU time in ticks of 10 ms. schedstat gives it in nanoseconds, but for one thread
// only. At ten samples per second the ticks are too coarse. So a process with one thread is
// measured by its schedule, split into user and system time like its ticks.
#include "monitor/sampler/task_watch.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace score::monitor {

namespace {

constexpr std::size_t kMaxProcesses = 2'048;  // of an attempt on a node; two descriptors each
constexpr std::size_t kMaxTextBytes = 1'024;
constexpr std::uint8_t kStatAge = 2;
constexpr Duration kTick = 10ms;  // USER_HZ is 100 on every architecture that we support

// Reads the file into `buffer`. The result is empty if the process is gone.
std::string_view read_again(int fd, std::array<char, kMaxTextBytes>& buffer) {
  const ssize_t got = pread(fd, buffer.data(), buffer.size(), 0);
  return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
}

// Returns true for the programs of Scored that run among the tasks: the server for PMIx, and the
// process that waits to become it.
bool is_helper(std::string_view stat) {
  const auto begin = stat.find('(');
  const auto end = stat.rfind(')');
  if (begin == stat.npos || end == stat.npos || end <= begin) return false;
  const std::string_view name = stat.substr(begin + 1, end - begin - 1);
  return name == "scored-pmix" || name == "scored-shepherd";
}

TaskState state_of(char letter) {
  switch (letter) {
    case 'R':
      return TaskState::Running;
    case 'T':
    case 't':
      return TaskState::Stopped;
    case 'Z':
    case 'X':
      return TaskState::Ended;
    default:
      return TaskState::Blocked;
  }
}

struct CpuTime {
  Duration user{0}, system{0};
};

CpuTime cpu_of(const ProcessStat& stat, const ProcessSchedule& schedule) {
  const auto user = static_cast<std::int64_t>(stat.user_ticks);
  const auto system = static_cast<std::int64_t>(stat.system_ticks);
  if (stat.threads > 1 || stat.children_ticks > 0) return {kTick * user, kTick * system};
  if (user + system == 0) return {schedule.ran, Duration(0)};
  const double part = static_cast<double>(system) / static_cast<double>(user + system);
  const Duration in_system(
      static_cast<Duration::rep>(static_cast<double>(schedule.ran.count()) * part));
  return {schedule.ran - in_system, in_system};
}

}  // namespace

TaskWatch::TaskWatch(Tasks tasks, FindProcesses find, std::string proc)
    : tasks_(std::move(tasks)), find_(std::move(find)), proc_(std::move(proc)) {
  set_pids(std::move(tasks_.pids));
}

void TaskWatch::set_pids(std::vector<pid_t> pids) {
  pids.resize(std::min(pids.size(), tasks_.ranks.size()));  // the pids come from the user
  if (pids.size() < samples_.size()) return;  // a task that had a process never loses it
  tasks_.pids = std::move(pids);
  ended_.resize(tasks_.pids.size());
  samples_.resize(tasks_.pids.size());
}

void TaskWatch::add(pid_t pid) {
  Process process;
  auto stat = open_file(fmt::format("{}/{}/stat", proc_, pid), O_RDONLY);
  auto schedule = open_file(fmt::format("{}/{}/schedstat", proc_, pid), O_RDONLY);
  if (!stat || !schedule) return;
  std::array<char, kMaxTextBytes> buffer;
  const bool is_task = std::ranges::find(tasks_.pids, pid) != tasks_.pids.end();
  if (!is_task && is_helper(read_again(stat->get(), buffer))) return;
  process.stat_file = *std::move(stat);
  process.schedule_file = *std::move(schedule);
  processes_.emplace(pid, std::move(process));
}

void TaskWatch::look_up() {
  if (tasks_.pids.empty()) return;
  auto found = find_();
  if (found.size() > kMaxProcesses) found.resize(kMaxProcesses);
  std::sort(found.begin(), found.end());
  for (auto next = processes_.begin(); next != processes_.end();) {
    const auto current = next++;
    if (std::binary_search(found.begin(), found.end(), current->first)) continue;
    const CpuTime cpu = cpu_of(current->second.stat, current->second.schedule);
    // The time of a reaped child is now in its parent's time; at most one period is lost.
    const bool is_task = tasks_.pids[current->second.task] == current->first;
    if (is_task) ended_[current->second.task].user += cpu.user;
    if (is_task) ended_[current->second.task].system += cpu.system;
    ended_[current->second.task].waited += current->second.schedule.waited;
    processes_.erase(current);
  }
  for (const pid_t pid : found) {
    if (pid > 1 && !processes_.contains(pid)) add(pid);
  }
  for (auto& [pid, process] : processes_) {
    if (!process.is_read) read_process(process, true);
  }
  assign_ranks();
}

// A process has the rank of its task, or the rank of its parent.
void TaskWatch::assign_ranks() {
  for (auto& [pid, process] : processes_) {
    pid_t ancestor = pid;
    for (int generations = 0; generations < 32; ++generations) {
      const auto task = std::find(tasks_.pids.begin(), tasks_.pids.end(), ancestor);
      if (task != tasks_.pids.end()) {
        process.task = static_cast<std::size_t>(task - tasks_.pids.begin());
        break;
      }
      const auto parent = processes_.find(ancestor);
      if (parent == processes_.end()) break;
      ancestor = parent->second.stat.parent;
    }
  }
}

bool TaskWatch::needs_stat(const Process& process, bool is_active, bool frozen) {
  if (!process.is_read) return true;
  if (!frozen && (process.was_frozen || is_active != process.was_active)) return true;
  if (!is_active) return !frozen && process.stat.state == 'R';
  const bool has_only_ticks = process.stat.threads > 1 || process.stat.children_ticks > 0;
  return has_only_ticks || process.stat_age >= kStatAge;
}

void TaskWatch::read_process(Process& process, bool frozen) {
  std::array<char, kMaxTextBytes> buffer;
  const auto schedule = parse_schedule(read_again(process.schedule_file.get(), buffer));
  process.is_gone = !schedule;
  if (!schedule) return;
  const bool is_active = *schedule != process.schedule;
  const bool is_stale = needs_stat(process, is_active, frozen);
  process.schedule = *schedule;
  process.was_active = is_active;
  ++process.stat_age;
  if (!is_stale) return;
  const auto stat = parse_stat(read_again(process.stat_file.get(), buffer));
  process.is_gone = !stat;
  if (!stat) return;
  process.stat = *stat;
  process.stat_age = 1;
  process.was_frozen = frozen;
  process.is_read = true;
}

std::vector<std::vector<pid_t>> TaskWatch::processes() const {
  std::vector<std::vector<pid_t>> all(tasks_.pids.size());
  for (const auto& [pid, process] : processes_) {
    auto& of_task = all[process.task];
    const bool is_own = tasks_.pids[process.task] == pid;
    of_task.insert(is_own ? of_task.begin() : of_task.end(), pid);
  }
  return all;
}

void TaskWatch::add_to(TaskSample& sample, const Process& process, bool is_first) const {
  const CpuTime cpu = cpu_of(process.stat, process.schedule);
  sample.user += cpu.user;
  sample.system += cpu.system;
  sample.waited += process.schedule.waited;
  sample.switches += process.schedule.turns;
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  sample.memory += Bytes(process.stat.resident_pages * page);
  ++sample.processes;
  // The busiest process determines the state of the task, or the task's own process if none is
  // busy.
  const TaskState state = state_of(process.stat.state);
  if (is_first || state == TaskState::Running) sample.state = state;
}

void TaskWatch::distrust() {
  for (auto& [pid, process] : processes_) process.was_frozen = true;
}

std::vector<TaskSample>& TaskWatch::read(bool frozen) {
  for (std::size_t i = 0; i < samples_.size(); ++i) {
    samples_[i] = TaskSample();
    samples_[i].rank = Rank(tasks_.ranks[i]);
    samples_[i].pid = tasks_.pids[i];
    samples_[i].state = TaskState::Ended;
    samples_[i].user = ended_[i].user;
    samples_[i].system = ended_[i].system;
    samples_[i].waited = ended_[i].waited;
  }
  for (auto& [pid, process] : processes_) {
    read_process(process, frozen);
    if (!process.is_read || process.is_gone) continue;
    TaskSample& sample = samples_[process.task];
    add_to(sample, process, sample.processes == 0);
  }
  for (TaskSample& sample : samples_) {
    if (frozen && sample.processes > 0) sample.state = TaskState::Frozen;
  }
  return samples_;
}

}  // namespace score::monitor
