#pragma once
// Finds values of a sound configuration that cannot do what they were meant for: users, groups and
// files that do not exist, and limits that exclude each other. `scored --check-config` prints them;
// the head starts in spite of them.

#include "scored/head/config/config.hpp"

#include <functional>
#include <string>
#include <vector>

namespace score::head {

// HostLookups asks this host. Tests have others.
struct HostLookups {
  std::function<bool(const std::string&)> has_user;   // name or number
  std::function<bool(const std::string&)> has_group;  // name
  std::function<bool(const std::string&)> can_read;   // path
};

// The lookups may block, because they ask the user directory.
[[nodiscard]] HostLookups host_lookups();

// Returns one line per warning, which names table and key.
[[nodiscard]] std::vector<std::string> config_warnings(const HeadConfig& config,
                                                       const HostLookups& host);

}  // namespace score::head
