// Whether this host has what [network] names.
#pragma once

#include "scored/config/network_config.hpp"

#include <string>

namespace score::node {

// Empty: all is there. Else what is missing: "no network: no interface eth1". Asks libfabric for
// its providers in a process of its own, so that this one does not grow; some 50 ms.
[[nodiscard]] std::string missing_device(const NetworkConfig& config);

}  // namespace score::node
