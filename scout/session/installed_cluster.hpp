// What the configuration of this host says about where its users reach the head. Commands read it
// only where no option and no variable names a socket.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

inline constexpr const char* kDefaultSocket = "/run/scored/head.sock";
inline constexpr const char* kConfigurationFile = "/etc/scored/scored.toml";

struct InstalledCluster {
  std::vector<std::string> heads;  // "HOST:PORT" of each of two heads; empty: one head, or unknown
  // With two heads: that of a head on this host first, then that of its node daemon. Each passes a
  // command on to the head in charge.
  std::vector<std::string> sockets;
};

// Any text may be given: what is no configuration names nothing.
InstalledCluster parse_installed(std::string_view text);

// Of kConfigurationFile.
InstalledCluster read_installed();

}  // namespace score::scout
