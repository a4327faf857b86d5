#pragma once
// Tracks the tasks of this node as processes: pid, and how each ended.

#include "base/model/usage.hpp"
#include "base/os/fd.hpp"
#include "proto/common.pb.h"

#include <cstdint>
#include <functional>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

namespace score::shepherd {

class TaskTable {
 public:
  // This is called once per task.
  using Ended = std::function<void(std::uint32_t task, const wire::TaskExit& exit)>;

  TaskTable(std::vector<std::uint32_t> ranks, Ended ended);  // [task]

  // Records that the spawner forked the task. The process may have ended, but must not be reaped
  // yet.
  void set_process(std::uint32_t task, pid_t pid);
  // Ends a task that never got a process. Does nothing if it has a process or has ended.
  void give_up(std::uint32_t task, int code, int signal);
  // Reaps all ended children, tasks and others. It must be called on SIGCHLD, once no more tasks
  // will be forked.
  void reap();

  // Names scored-task-parent, whose usage contains that of the tasks.
  void set_parent(pid_t pid) { parent_ = pid; }

  // Takes the end of a process that scored-task-parent has reaped.
  void reaped(pid_t pid, int code, int signal, const base::Usage& usage);
  // Sends a signal to every running task. A task that has just ended is not an error.
  void signal_all(int signal);

  [[nodiscard]] bool all_ended() const { return ended_count_ == tasks_.size(); }

  // Returns true if no task has a process now.
  [[nodiscard]] bool none_runs() const { return running_.empty(); }

  // Returns how many tasks have or had a process.
  [[nodiscard]] std::uint32_t started_count() const;

  // Returns true if all tasks ended by themselves with exit code 0.
  [[nodiscard]] bool all_ended_well() const;

  // Returns the exits in order of arrival.
  [[nodiscard]] const std::vector<wire::TaskExit>& exits() const { return exits_; }

  // Returns what all reaped children used, with their own children that they waited for.
  [[nodiscard]] const base::Usage& usage() const { return usage_; }

  [[nodiscard]] std::vector<std::int64_t> pids() const;  // in rank order; 0: no process yet
  // Returns the processes of the tasks that have not ended; 0: none.
  [[nodiscard]] std::vector<pid_t> running_pids() const;  // [task]
  // Leaves out tasks that have no process, which are the last ones if programs may start more.
  [[nodiscard]] std::vector<std::int64_t> started_pids() const;

 private:
  struct Task {
    pid_t pid = 0;
    bool ended = false;
  };

  void end(std::uint32_t task, int code, int signal);
  void add(const base::Usage& usage, bool is_task);

  std::vector<std::uint32_t> ranks_;
  std::vector<Task> tasks_;  // [task]
  std::unordered_map<pid_t, std::uint32_t> running_;
  std::vector<wire::TaskExit> exits_;
  pid_t parent_ = 0;
  std::size_t ended_count_ = 0;
  base::Usage usage_;
  Ended ended_;
};

}  // namespace score::shepherd
