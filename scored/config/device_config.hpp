#pragma once
// The table [devices] of the configuration: which devices jobs may open on this node.

#include "base/config/config.hpp"
#include "base/result.hpp"

#include <string>
#include <vector>

namespace score {

// Each entry is a path below /dev, perhaps with wildcards of glob(7) or a directory; or char-NAME
// or block-NAME, all devices of a driver as /proc/devices names it.
struct DeviceConfig {
  bool has_allow = false;  // without it all are allowed
  std::vector<std::string> allow;
  std::vector<std::string> deny;

  [[nodiscard]] bool restricts() const { return has_allow || !deny.empty(); }

  // The same for equal tables: "allow A B;deny C".
  [[nodiscard]] std::string text() const;
};

// A wrong entry is refused in the file.
[[nodiscard]] DeviceConfig read_device_config(ConfigSection& root);

// What scored-device-guard has put in force for a cgroup is written beside it, as an attribute of
// its directory; it goes with the cgroup.
inline constexpr const char* kDeviceMark = "user.scored.devices";

// text() of the table in force for this cgroup directory; empty: none.
[[nodiscard]] std::string read_device_mark(const std::string& cgroup);

}  // namespace score
