// The node daemon's end of its guard, scored-thaw: a process that lets all jobs go on when this one
// is gone, or when its lease ends. It ends with the last descriptor of this object's socket, so
// when the daemon does.
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
  // `cgroup_root`: of the jobs; empty: there are none.
  explicit ThawGuard(std::string cgroup_root);

  // Everything is thawed unless this is called again within `lease`; zero: none needed. Wakes no
  // process. Starts the guard if it is needed and does not run; an error is logged once.
  void renew(Duration lease);

  // Process groups that it continues too, for jobs without cgroups. `is_watched` false: not any
  // more.
  void watch(pid_t group, bool is_watched);

 private:
  Status start();
  [[nodiscard]] bool has_ended();
  void tell(pid_t group, bool is_watched) const;

  std::string cgroup_root_;
  UniqueFd lease_;  // a timer; the guard has it too
  UniqueFd socket_;
  SpawnedProcess process_;
  std::set<pid_t> groups_;
  bool has_complained_ = false;
};

}  // namespace score::node
