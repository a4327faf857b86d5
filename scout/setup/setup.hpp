// Sets up a head or a node.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score::scout {

struct HeadSetupOptions {
  std::string nodes;               // host list; empty: the configured nodes
  std::string cluster;             // empty: as configured, initially the host's name
  std::string address;             // at which nodes reach this host; empty: the host's name
  std::string login_nodes;         // host list; empty: as configured
  std::vector<std::string> allow;  // networks in addition to those of the host's interfaces
  std::uint16_t port = 0;          // 0: as configured, initially 7421
};

struct NodeSetupOptions {
  std::string head;  // host or host:port
  std::string token;
  std::string name;  // empty: the host's name
  bool login = false;
  bool ignore_users = false;
};

// Both print the next steps to stdout. Errors: one line with the remedy; nothing has been started
// then.
Status set_up_head(const HeadSetupOptions& options);
Status set_up_node(const NodeSetupOptions& options);
// Prints new tokens for these nodes.
Status print_tokens(const HeadSetupOptions& options);

}  // namespace score::scout
