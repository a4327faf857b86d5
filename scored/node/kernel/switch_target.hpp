// Stops and continues the tasks of one attempt.
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <memory>
#include <string>
#include <sys/types.h>

namespace score::node {

// Writes '1' (stop) or '0' (go on) to cgroup.freeze. Returns 0 or an errno.
int write_freezer(int control, char value) noexcept;

// Called by the switcher's real-time thread: one system call, no allocation, no log, no wait. Both
// may be repeated. Return 0 or an errno.
class SwitchTarget {
 public:
  // freezer: the descriptor of cgroup.freeze, if stop() and go() only write there.
  explicit SwitchTarget(int freezer = -1) : freezer_(freezer) {}

  SwitchTarget(const SwitchTarget&) = delete;
  SwitchTarget& operator=(const SwitchTarget&) = delete;
  virtual ~SwitchTarget() = default;

  virtual int stop() noexcept = 0;
  virtual int go() noexcept = 0;

  [[nodiscard]] int freezer() const { return freezer_; }

 private:
  int freezer_;
};

// The cgroup2 freezer: everything in the cgroup stops, whatever it does about signals, and the
// kernel also stops processes forked meanwhile.
class CgroupFreeze final : public SwitchTarget {
 public:
  // `cgroup` is the directory of the tasks.
  static Result<std::unique_ptr<SwitchTarget>> open(const std::string& cgroup);

  explicit CgroupFreeze(UniqueFd control)
      : SwitchTarget(control.get()), control_(std::move(control)) {}

  int stop() noexcept override { return write_freezer(freezer(), '1'); }

  int go() noexcept override { return write_freezer(freezer(), '0'); }

 private:
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
