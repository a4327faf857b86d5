#pragma once
// TaskWatch reads the tasks of one attempt on this node: the processes in its cgroup (or below its
// first ones). It keeps descriptors open, so that a reading is a pread, and a reused pid is an
// error instead of a different process. It does not use Asio and is for one thread.
//
// The shepherd reports the ranks, and it runs as the user. So a pid is accepted only if it is among
// the processes found. A found process that belongs to no rank counts for the lowest rank, unless
// it is a program of Scored.

#include "base/os/fd.hpp"
#include "monitor/sampler/proc_text.hpp"
#include "monitor/sampler/samples.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace score::monitor {

// Returns the present processes of the attempt. It never fails: processes that cannot be read are
// left out.
using FindProcesses = std::function<std::vector<pid_t>()>;

class TaskWatch {
 public:
  struct Tasks {
    std::vector<std::uint32_t> ranks;  // ascending
    std::vector<pid_t> pids;           // of these ranks
  };

  // `proc` is the path of /proc; tests set it.
  TaskWatch(Tasks tasks, FindProcesses find, std::string proc = "/proc");

  // Sets the present pids: tasks that have started since then have the next ranks. Call it before
  // look_up().
  void set_pids(std::vector<pid_t> pids);

  // Looks for the present processes, so that read() knows them. Once per second is enough.
  void look_up();

  // Returns one sample per rank, by rank. `frozen` says that the attempt does not run now. The
  // result is valid until the next call, and the caller may add to it.
  [[nodiscard]] std::vector<TaskSample>& read(bool frozen);

  // Makes read() read all states again, because the processes may have been frozen at the last
  // samples without its knowledge.
  void distrust();

  // Returns the samples of the last read(), which remain true for a gang that has not run since.
  [[nodiscard]] const std::vector<TaskSample>& last() const { return samples_; }

  // Returns for each task the processes of the last look_up(); its own process comes first.
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
    bool was_frozen = false;    // when stat was read, so its state is not reliable
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
  std::vector<TaskSample> ended_;    // times of processes that are gone
  std::vector<TaskSample> samples_;  // [task]
};

}  // namespace score::monitor
