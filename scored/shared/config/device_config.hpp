#pragma once
// This header declares the table [devices] of the configuration: which devices jobs may open on
// this node.

#include "base/config/config.hpp"
#include "base/result.hpp"

#include <string>
#include <vector>

namespace score {

// Each entry is a path below /dev, which may be a directory or have the wildcards of glob(7). An
// entry may also be char-NAME or block-NAME, which means all devices of a driver as /proc/devices
// names it.
struct DeviceAccess {
  bool has_allow = false;  // without `allow`, all devices are allowed
  std::vector<std::string> allow;
  std::vector<std::string> deny;

  [[nodiscard]] bool restricts() const { return has_allow || !deny.empty(); }

  // Returns a text such as "allow A B;deny C"; equal tables give equal texts.
  [[nodiscard]] std::string text() const;
};

// Reads [devices]; a wrong entry becomes an error of the file.
[[nodiscard]] DeviceAccess read_device_config(ConfigSection& root);

// scored-device-guard writes the table that is in force for a cgroup to this extended attribute of
// the cgroup's directory. The attribute disappears with the cgroup.
inline constexpr const char* kDeviceMark = "user.scored.devices";

// Returns the text() of the table in force for this cgroup directory; empty if there is none.
[[nodiscard]] std::string read_device_mark(const std::string& cgroup);

}  // namespace score
