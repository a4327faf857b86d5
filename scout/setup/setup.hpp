// The two ways of scored-setup.
#pragma once

#include "base/result.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace score::scout {

struct HeadOptions {
  std::string nodes;               // host list; empty: those of the configuration
  std::string cluster;             // empty: as it is configured, at first the host's name
  std::string address;             // under which nodes reach this host; empty: the host's name
  std::string login_nodes;         // host list; empty: as it is configured
  std::vector<std::string> allow;  // networks besides those of the host's interfaces
  std::uint16_t port = 0;          // 0: as it is configured, at first 7421
};

struct NodeOptions {
  std::string head;  // host or host:port
  std::string token;
  std::string name;  // empty: the host's
  bool login = false;
  bool ignore_users = false;
};

// Both print what to do next to stdout. Errors: one line with the remedy; nothing has been started
// then.
Status set_up_head(const HeadOptions& options);
Status set_up_node(const NodeOptions& options);
// New tokens of these nodes.
Status print_tokens(const HeadOptions& options);

}  // namespace score::scout
