// Checks whether this host has the devices that [network] names.
#pragma once

#include "scored/shared/config/network_config.hpp"

#include <string>

namespace score::node {

// Returns what is missing, for example "no network: no interface eth1", or "" if nothing is. A
// separate process asks libfabric for its providers, so that this one does not grow; that takes
// some 50 ms.
[[nodiscard]] std::string missing_device(const NetworkConfig& config);

}  // namespace score::node
