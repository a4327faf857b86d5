#pragma once
// Determines the address at which other nodes reach this one.

#include "base/result.hpp"
#include "scored/shared/config/network_config.hpp"

#include <string>

namespace score::node {

// Returns the network interface that the jobs' datagrams use; other devices may have no IPv4
// address. An empty result means the interface towards the head.
[[nodiscard]] std::string control_interface(const NetworkConfig& network);

// Returns the address as text. Errors: errno codes, NotFound.
[[nodiscard]] Result<std::string> own_address(const NetworkConfig& network,
                                              const std::string& head_host);

}  // namespace score::node
