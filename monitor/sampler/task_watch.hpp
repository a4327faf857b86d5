#pragma once
// Reads the tasks of one attempt on this node: the processes in its cgroup (or below its first
// ones), through descriptors that are kept, so that a reading is a pread and a reused pid is an
// error instead of another process. No Asio. One thread.
//
// Which ranks there are is what the shepherd says, and it runs as the user: a pid is believed only
// if it is among the processes found. What is found and belongs to no rank counts for the lowest.

#include "base/os/fd.hpp"
#include "monitor/sampler/proc_text.hpp"
#include "monitor/sampler/samples.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace score::monitor {

// The processes of the attempt now. Never fails: what cannot be read is not there.
using FindProcesses = std::function<std::vector<pid_t>()>;

class TaskWatch {
 public:
  struct Tasks {
    std::vector<std::uint32_t> ranks;  // ascending
    std::vector<pid_t> pids;           // of these ranks
  };

  // `proc`: where /proc is, for tests.
  TaskWatch(Tasks tasks, FindProcesses find, std::string proc = "/proc");

  // The pids as they are now: tasks that have started since are the next ranks'. Before look_up().
  void set_pids(std::vector<pid_t> pids);

  // Looks which processes there are; then read() knows them. Once a second is enough.
  void look_up();

  // One sample a rank, by rank. `frozen`: the attempt does not run now. Valid until the next call;
  // the caller may add to it.
  [[nodiscard]] std::vector<TaskSample>& read(bool frozen);

  // The last samples may be of processes that were frozen without read() knowing it: their states
  // are read again.
  void distrust();

  // The samples of the last read(): of a gang that did not run since, they are still true.
  [[nodiscard]] const std::vector<TaskSample>& last() const { return samples_; }

  // [task]: those that were there at the last look_up(), its own process first.
  [[nodiscard]] std::vector<std::vector<pid_t>> processes() const;

  [[nodiscard]] std::size_t process_count() const { return processes_.size(); }

 private:
  struct Process {
    UniqueFd stat_file, schedule_file;
    std::size_t task = 0;  // index of its rank
    ProcessStat stat;
    ProcessSchedule schedule;
    bool is_read = false;
    bool is_gone = false;
    bool was_active = false;    // between the last two readings
    std::uint8_t stat_age = 0;  // readings since stat was read
    bool was_frozen = false;    // when stat was read: its state says nothing
  };

  void add(pid_t pid);
  void assign_ranks();
  static void read_process(Process& process, bool frozen);
  static bool needs_stat(const Process& process, bool is_active, bool frozen);
  void add_to(TaskSample& sample, const Process& process, bool is_first) const;

  Tasks tasks_;
  FindProcesses find_;
  std::string proc_;
  std::map<pid_t, Process> processes_;
  std::vector<TaskSample> ended_;    // [task]: what processes had that are gone: times
  std::vector<TaskSample> samples_;  // [task]
};

}  // namespace score::monitor
