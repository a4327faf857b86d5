// Manages the guard of the node daemon, scored-thaw: a process that continues all jobs when this
// daemon is gone or its lease expires. The guard ends with the last descriptor of this object's
// socket, that is, with the daemon.
#pragma once

#include "base/os/fd.hpp"
#include "base/os/spawn.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <set>
#include <string>
#include <sys/types.h>

namespace score::node {

class ThawGuard {
 public:
  // `cgroup_root` contains the jobs' cgroups; empty if there are none.
  explicit ThawGuard(std::string cgroup_root);

  // The guard thaws everything unless this is called again within `lease`; zero means that no lease
  // is needed. Wakes no process. Starts the guard if it is needed and not running; an error is
  // logged once.
  void renew(Duration lease);

  // Adds a process group that the guard must continue, for jobs without cgroups. `is_watched` false
  // removes it.
  void watch(pid_t group, bool is_watched);

 private:
  Status start();
  [[nodiscard]] bool has_ended();
  void send_group(pid_t group, bool is_watched) const;

  std::string cgroup_root_;
  UniqueFd lease_;  // a timer that the guard also holds
  UniqueFd socket_;
  SpawnedProcess process_;
  std::set<pid_t> groups_;
  bool has_logged_failure_ = false;
};

}  // namespace score::node
