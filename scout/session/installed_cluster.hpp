// Reads from the configuration of this host where its users reach the head. Commands read it only
// if no option and no variable names a socket.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

inline constexpr const char* kDefaultSocket = "/run/scored/head.sock";
inline constexpr const char* kConfigurationFile = "/etc/scored/scored.toml";

struct InstalledCluster {
  std::vector<std::string> heads;  // "HOST:PORT" of each of two heads; empty: one head, or unknown
  // With two heads: the socket of a head on this host first, then that of its node daemon. Each
  // passes a command on to the active head.
  std::vector<std::string> sockets;
};

// Accepts any text; a text that is not a configuration gives an empty result.
InstalledCluster parse_installed(std::string_view text);

// Parses kConfigurationFile.
InstalledCluster read_installed();

}  // namespace score::scout
