#pragma once
// Resolves entries of [devices] to device numbers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::device_guard {

struct DeviceRule {
  bool is_block = false;
  std::uint32_t major = 0;
  std::optional<std::uint32_t> minor;  // none: all

  friend bool operator==(const DeviceRule&, const DeviceRule&) = default;
};

// Returns the devices that every program and the daemon need: null, zero, full, random, urandom,
// tty, ptmx and pseudo-terminals.
[[nodiscard]] std::vector<DeviceRule> basic_devices();

// Parses a rule such as "c195:0" or "b7:1".
[[nodiscard]] std::optional<DeviceRule> parse_rule(std::string_view text);

// Returns the devices that an entry names now. For "/dev/nvidia*" these are the existing ones, for
// a directory all below it, and for "char-NAME" the numbers in `drivers`, the text of
// /proc/devices. The result is empty if there are none.
[[nodiscard]] std::vector<DeviceRule> resolve(const std::string& entry, std::string_view drivers);

}  // namespace score::device_guard
