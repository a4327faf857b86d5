// Stopping and continuing the tasks of one attempt: the one thing a gang switch does to a node.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"

#include <memory>
#include <string>
#include <sys/types.h>

namespace score::node {

// Called by the switcher's real-time thread: one system call, no allocation, no log, no wait. Both
// may be repeated. Give 0 or an errno.
class SwitchTarget {
 public:
  SwitchTarget() = default;
  SwitchTarget(const SwitchTarget&) = delete;
  SwitchTarget& operator=(const SwitchTarget&) = delete;
  virtual ~SwitchTarget() = default;

  virtual int stop() noexcept = 0;
  virtual int go() noexcept = 0;
};

// The cgroup2 freezer: everything in the cgroup stops, whatever it does about signals, and the
// kernel takes care of what is forked meanwhile.
class CgroupFreeze final : public SwitchTarget {
 public:
  // `cgroup` is the directory of the tasks.
  static Result<std::unique_ptr<SwitchTarget>> open(const std::string& cgroup);

  explicit CgroupFreeze(UniqueFd control) : control_(std::move(control)) {}

  [[gnu::hot]] int stop() noexcept override { return put('1'); }

  [[gnu::hot]] int go() noexcept override { return put('0'); }

 private:
  int put(char value) noexcept;

  UniqueFd control_;  // cgroup.freeze
};

// SIGSTOP and SIGCONT to the tasks' process group: where there are no cgroups, so only in the
// one-user cluster. A task that leaves its group runs on.
class SignalGroup final : public SwitchTarget {
 public:
  explicit SignalGroup(pid_t group) : group_(group) {}

  int stop() noexcept override;
  int go() noexcept override;

 private:
  pid_t group_;
};

}  // namespace score::node
