#include "scored/shared/config/device_config.hpp"

#include <fmt/ranges.h>

#include <sys/xattr.h>

namespace score {
namespace {

constexpr std::size_t kMaxEntries = 100;
constexpr std::size_t kMaxEntryBytes = 200;
constexpr std::size_t kMaxMarkBytes = 64UL * 1024;

// Returns what is wrong with the entries; empty if nothing is.
std::string fault_of(const std::vector<std::string>& entries) {
  if (entries.size() > kMaxEntries) return fmt::format("at most {} entries", kMaxEntries);
  for (const std::string& entry : entries) {
    const bool is_driver = entry.starts_with("char-") || entry.starts_with("block-");
    const bool is_path = entry.starts_with("/dev/") && entry.find("..") == entry.npos;
    const bool is_plain = entry.find_first_of(" ;\t\n") == entry.npos;
    if ((is_driver || is_path) && is_plain && entry.size() <= kMaxEntryBytes) continue;
    return fmt::format("'{}' is neither /dev/PATH, char-NAME nor block-NAME",
                       escape_terminal(entry, 80));
  }
  return {};
}

void read_entries(ConfigSection& section, std::string_view key, std::vector<std::string>& entries) {
  section.read(key, entries);
  if (const std::string fault = fault_of(entries); !fault.empty()) section.refuse(key, fault);
}

}  // namespace

std::string DeviceAccess::text() const {
  return fmt::format("{} {};deny {}", has_allow ? "allow" : "all", fmt::join(allow, " "),
                     fmt::join(deny, " "));
}

DeviceAccess read_device_config(ConfigSection& root) {
  DeviceAccess config;
  ConfigSection section = root.section("devices");
  config.has_allow = section.has("allow");
  read_entries(section, "allow", config.allow);
  read_entries(section, "deny", config.deny);
  return config;
}

std::string read_device_mark(const std::string& cgroup) {
  std::string text(kMaxMarkBytes, '\0');
  const ssize_t size = ::getxattr(cgroup.c_str(), kDeviceMark, text.data(), text.size());
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

}  // namespace score
