#pragma once
// Compiles rules to an eBPF program of type BPF_PROG_TYPE_CGROUP_DEVICE. The program returns 1 to
// let a device be opened or made.

#include "pmlib/wire/ebpf_program.hpp"
#include "scored/privileged/device_guard/device_rules.hpp"

namespace score::device_guard {

struct DevicePolicy {
  std::vector<DeviceRule> always;  // checked first
  std::vector<DeviceRule> deny;
  std::vector<DeviceRule> allow;
  bool otherwise = true;  // for devices without a rule
};

[[nodiscard]] pm::EbpfProgram make_program(const DevicePolicy& policy);

}  // namespace score::device_guard
