// Writes the configuration files of the daemons of a cluster of `score start`.
#pragma once

#include "scout/cluster/layout.hpp"
#include "scout/start/plan/messages.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score::scout {

struct HeadSetup {
  std::vector<std::string> nodes;
  std::string listen = "0.0.0.0";  // or "[::]"
  std::uint16_t port = 0;          // 0: any
  std::string slice;               // empty: the default
  std::uint32_t slots = 0;         // 0: the default
  std::string node_timeout;        // empty: the default
  std::string hooks;               // lines with the table [hooks]; empty: none
};

// Returns scored.toml of the head. Its key and directories are those of the layout.
[[nodiscard]] std::string head_config(const Layout& layout, const HeadSetup& setup);

// The daemon of a node has this name in the layout of its host, whatever the node's name is.
inline constexpr const char* kNodeDaemon = "node";

// Returns scored.toml of a node. `head_host` is the address at which it reaches the head.
[[nodiscard]] std::string node_config(const Layout& layout, const Orders& orders,
                                      const std::string& head_host);

}  // namespace score::scout
