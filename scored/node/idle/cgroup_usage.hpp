// Reads how much processor time an attempt's tasks have used, and waited for.
#pragma once

#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

#include <memory>
#include <string>
#include <utility>

namespace score::node {

// Reads the processor time of an attempt's tasks. The switcher's thread calls it: one system call
// of some microseconds each, no allocation.
class CpuUsage {
 public:
  CpuUsage() = default;
  CpuUsage(const CpuUsage&) = delete;
  CpuUsage& operator=(const CpuUsage&) = delete;
  virtual ~CpuUsage() = default;

  // Returns all processor time of the tasks so far; < 0: unknown.
  virtual Duration used() noexcept = 0;
  // Returns the time so far in which a task could have run but had to wait for a core.
  virtual Duration waited() noexcept = 0;
  // Returns the processor time of this process alone; < 0: it is gone. Costs a tenth of used().
  virtual Duration used_by(pid_t process) noexcept = 0;
};

// Reads cpu.stat, which every cgroup2 directory has, with or without the cpu controller. It also
// reads cpu.pressure if the kernel has it; without it, tasks on a crowded machine may seem idle.
class CgroupUsage final : public CpuUsage {
 public:
  static Result<std::unique_ptr<CpuUsage>> open(const std::string& cgroup);

  CgroupUsage(UniqueFd stat, UniqueFd pressure)
      : stat_(std::move(stat)), pressure_(std::move(pressure)) {}

  Duration used() noexcept override;
  Duration waited() noexcept override;
  Duration used_by(pid_t process) noexcept override;

 private:
  UniqueFd stat_;
  UniqueFd pressure_;
};

}  // namespace score::node
