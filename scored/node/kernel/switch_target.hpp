// Stops and continues the tasks of one attempt, and can run them at idle priority.
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <cerrno>
#include <memory>
#include <string>
#include <sys/types.h>

namespace score::node {

// Writes '1' or '0' to cgroup.freeze (stop, continue) or cpu.idle (idle priority, normal priority).
// Returns 0 or an errno.
int write_control(int control, char value) noexcept;

// The switcher's real-time thread calls these functions: one system call each, no allocation, no
// log, no wait. They may be repeated, and return 0 or an errno.
class SwitchTarget {
 public:
  // `freezer` is the descriptor of cgroup.freeze, if stop() and go() only write there. `priority`
  // is the descriptor of cpu.idle, if set_low() only writes there.
  explicit SwitchTarget(int freezer = -1, int priority = -1)
      : freezer_(freezer), priority_(priority) {}

  SwitchTarget(const SwitchTarget&) = delete;
  SwitchTarget& operator=(const SwitchTarget&) = delete;
  virtual ~SwitchTarget() = default;

  virtual int stop() noexcept = 0;
  virtual int go() noexcept = 0;

  // At idle priority the attempt uses the processor time that others leave.
  virtual int set_low(bool) noexcept { return ENOTSUP; }

  [[nodiscard]] virtual bool can_fill() const { return priority_ >= 0; }

  [[nodiscard]] int freezer() const { return freezer_; }

  [[nodiscard]] int priority() const { return priority_; }

  // Returns true if processes of the attempt run while it is stopped. They then do so at idle
  // priority.
  [[nodiscard]] bool has_helpers() const { return has_helpers_; }

  void set_has_helpers(bool has) { has_helpers_ = has; }

 private:
  int freezer_;
  int priority_;
  bool has_helpers_ = false;
};

// Uses the cgroup2 freezer. It stops every process in the cgroup, regardless of signal handlers,
// and also those that are forked during the freeze.
class CgroupFreeze final : public SwitchTarget {
 public:
  // `cgroup` is the directory of the tasks; `idle` is the path of their cpu.idle, or "" if they
  // have none.
  static Result<std::unique_ptr<SwitchTarget>> open(const std::string& cgroup,
                                                    const std::string& idle = "");

  explicit CgroupFreeze(UniqueFd freezer, UniqueFd priority = UniqueFd())
      : SwitchTarget(freezer.get(), priority ? priority.get() : -1),
        freezer_(std::move(freezer)),
        priority_(std::move(priority)) {}

  int stop() noexcept override { return write_control(freezer(), '1'); }

  int go() noexcept override { return write_control(freezer(), '0'); }

  int set_low(bool low) noexcept override { return write_control(priority(), low ? '1' : '0'); }

 private:
  UniqueFd freezer_;   // cgroup.freeze
  UniqueFd priority_;  // cpu.idle
};

// Sends SIGSTOP and SIGCONT to the tasks' process group. It is for hosts without cgroups, that is,
// only for the one-user cluster. A task that leaves its group is not stopped.
class SignalGroup final : public SwitchTarget {
 public:
  explicit SignalGroup(pid_t group) : group_(group) {}

  int stop() noexcept override;
  int go() noexcept override;

 private:
  pid_t group_;
};

}  // namespace score::node
