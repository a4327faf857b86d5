#include "scored/privileged/device_guard/device_rules.hpp"

#include "base/text.hpp"

#include <filesystem>
#include <glob.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace score::device_guard {
namespace {

namespace fs = std::filesystem;

void add_device(const std::string& path, std::vector<DeviceRule>& rules) {
  struct stat info {};

  if (::stat(path.c_str(), &info) != 0) return;
  if (!S_ISCHR(info.st_mode) && !S_ISBLK(info.st_mode)) return;
  rules.push_back({S_ISBLK(info.st_mode), major(info.st_rdev), minor(info.st_rdev)});
}

std::vector<DeviceRule> resolve_path(const std::string& pattern) {
  glob_t found{};
  std::vector<DeviceRule> rules;
  const bool any = ::glob(pattern.c_str(), 0, nullptr, &found) == 0;
  for (std::size_t i = 0; any && i < found.gl_pathc; ++i) {
    const std::string path = found.gl_pathv[i];
    add_device(path, rules);
    std::error_code error;
    fs::recursive_directory_iterator below(path, error);
    for (; !error && below != fs::recursive_directory_iterator(); below.increment(error)) {
      add_device(below->path(), rules);
    }
  }
  ::globfree(&found);
  return rules;
}

// Reads lines such as "  1 mem" below "Character devices:" or "Block devices:".
std::vector<DeviceRule> resolve_driver(bool is_block, std::string_view name,
                                       std::string_view drivers) {
  std::vector<DeviceRule> rules;
  bool is_part = false;
  for (std::string_view line : split(drivers, '\n')) {
    line = trim(line);
    if (line.ends_with("devices:")) is_part = line.starts_with("Block") == is_block;
    const auto blank = line.find(' ');
    if (!is_part || blank == line.npos || line.substr(blank + 1) != name) continue;
    const auto number = parse_number<std::uint32_t>(line.substr(0, blank));
    if (number) rules.push_back({is_block, *number, std::nullopt});
  }
  return rules;
}

}  // namespace

std::vector<DeviceRule> basic_devices() {
  constexpr std::uint32_t kMemory = 1, kTerminal = 5;
  std::vector<DeviceRule> rules;
  for (const std::uint32_t minor : {3U, 5U, 7U, 8U, 9U}) rules.push_back({false, kMemory, minor});
  for (const std::uint32_t minor : {0U, 2U}) rules.push_back({false, kTerminal, minor});
  for (std::uint32_t number = 136; number < 144; ++number) {
    rules.push_back({false, number, std::nullopt});
  }
  return rules;
}

std::optional<DeviceRule> parse_rule(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == text.npos || (text[0] != 'b' && text[0] != 'c')) return std::nullopt;
  const auto major = parse_number<std::uint32_t>(text.substr(1, colon - 1));
  const auto minor = parse_number<std::uint32_t>(text.substr(colon + 1));
  if (!major || !minor) return std::nullopt;
  return DeviceRule{text[0] == 'b', *major, *minor};
}

std::vector<DeviceRule> resolve(const std::string& entry, std::string_view drivers) {
  if (entry.starts_with("char-")) return resolve_driver(false, entry.substr(5), drivers);
  if (entry.starts_with("block-")) return resolve_driver(true, entry.substr(6), drivers);
  return resolve_path(entry);
}

}  // namespace score::device_guard
