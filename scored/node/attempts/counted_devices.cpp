#include "scored/node/attempts/counted_devices.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace score::node {

namespace {

// Returns where the device file is visible to this daemon. The daemon's unit has a private /dev,
// and the host's is at $SCORED_DEVICES.
std::string place_of(const std::string& file) {
  constexpr std::string_view kDevices = "/dev/";
  const char* host = std::getenv("SCORED_DEVICES");
  if (host == nullptr || !file.starts_with(kDevices)) return file;
  return host + file.substr(kDevices.size() - 1);
}

// Returns the type and number of a device: "c195:0", "b7:1".
Result<std::string> device_of(const std::string& file) {
  struct stat info {};

  if (::stat(place_of(file).c_str(), &info) != 0) return fail(errno_code(errno), "{}", file);
  if (!S_ISCHR(info.st_mode) && !S_ISBLK(info.st_mode)) {
    return fail(Errc::Malformed, "{} is not a device", file);
  }
  return fmt::format("{}{}:{}", S_ISBLK(info.st_mode) ? 'b' : 'c', major(info.st_rdev),
                     minor(info.st_rdev));
}

bool has_unit(std::span<const base::GenericShare> shares, const std::string& name,
              std::uint32_t index) {
  return std::ranges::any_of(shares, [&](const base::GenericShare& share) {
    return share.name == name && std::ranges::find(share.indices, index) != share.indices.end();
  });
}

}  // namespace

// A missing file is skipped, because tasks cannot open it either. Several units may have the same
// file.
Result<std::string> CountedDevices::denied(std::span<const base::GenericShare> shares) const {
  std::set<std::string> denied;
  std::set<std::string> own;
  if (!can_restrict_) return std::string();
  for (const GenericConfig& kind : kinds_) {
    for (std::uint32_t index = 0; index < kind.files.size(); ++index) {
      const bool is_own = has_unit(shares, kind.resource.name, index);
      const auto device = device_of(kind.files[index]);
      if (!device && is_own) {
        return device.error().with_context("{} {}", kind.resource.name, index);
      }
      if (device) (is_own ? own : denied).insert(*device);
    }
  }
  for (const std::string& device : own) denied.erase(device);
  return fmt::format("{}", fmt::join(denied, " "));
}

std::vector<std::string> CountedDevices::restricted_kinds() const {
  std::vector<std::string> names;
  for (const GenericConfig& kind : kinds_) {
    if (can_restrict_ && !kind.files.empty()) names.push_back(kind.resource.name);
  }
  return names;
}

}  // namespace score::node
