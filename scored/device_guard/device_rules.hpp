#pragma once
// Entries of [devices] as device numbers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::device_guard {

struct DeviceRule {
  bool is_block = false;
  std::uint32_t major = 0;
  std::optional<std::uint32_t> minor;  // nothing: all

  friend bool operator==(const DeviceRule&, const DeviceRule&) = default;
};

// What every program needs, and the daemon: null, zero, full, random, urandom, tty, ptmx and
// pseudo-terminals.
[[nodiscard]] std::vector<DeviceRule> basic_devices();

// "c195:0", "b7:1".
[[nodiscard]] std::optional<DeviceRule> parse_rule(std::string_view text);

// The devices that an entry names now: of "/dev/nvidia*" those that exist, of a directory all below
// it, of "char-NAME" the numbers in `drivers`, the text of /proc/devices. None: there are none.
[[nodiscard]] std::vector<DeviceRule> resolve(const std::string& entry, std::string_view drivers);

}  // namespace score::device_guard
