#pragma once
// The tasks of this node as processes: pid, pidfd, how each ended.

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
  // Called once for each task.
  using Ended = std::function<void(std::uint32_t task, const wire::TaskExit& exit)>;

  TaskTable(std::vector<std::uint32_t> ranks, Ended ended);  // of the tasks

  // The spawner forked it. It may have ended already, but was not reaped.
  void set_process(std::uint32_t task, pid_t pid);
  // A task that never got a process ends like this. One that has a process, or ended: nothing.
  void give_up(std::uint32_t task, int code, int signal);
  // Reaps every child that has ended, tasks and others. Call on SIGCHLD, once no more tasks come.
  void reap();
  // To every task that runs; one that has just ended is no error.
  void signal_all(int signal);

  [[nodiscard]] bool all_ended() const { return ended_count_ == tasks_.size(); }

  // None has a process now.
  [[nodiscard]] bool none_runs() const { return running_.empty(); }

  // That have or had a process.
  [[nodiscard]] std::uint32_t started_count() const;

  // By themselves, and with 0.
  [[nodiscard]] bool all_ended_well() const;

  [[nodiscard]] const std::vector<wire::TaskExit>& exits() const { return exits_; }  // as they came

  [[nodiscard]] std::vector<std::int64_t> pids() const;  // in rank order; 0: no process yet
  // Without those that have none: the last ones, where programs may start more.
  [[nodiscard]] std::vector<std::int64_t> started_pids() const;

 private:
  struct Task {
    pid_t pid = 0;
    base::UniqueFd pidfd;
    bool ended = false;
  };

  void end(std::uint32_t task, int code, int signal);

  std::vector<std::uint32_t> ranks_;
  std::vector<Task> tasks_;  // [task]
  std::unordered_map<pid_t, std::uint32_t> running_;
  std::vector<wire::TaskExit> exits_;
  std::size_t ended_count_ = 0;
  Ended ended_;
};

}  // namespace score::shepherd
