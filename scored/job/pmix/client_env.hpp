#pragma once
// Builds the variables by which a task finds the PMIx server of its node.

#include "scored/job/plan/plan.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::pmix {

// The server's rank in this name space is the node's index.
inline constexpr std::string_view kServerName = "scored-pmix";

// Returns all variables except PMIX_RANK, for a server that may not run yet and accepts connections
// at this port of the loopback interface. directory: the directory of the server's files.
std::vector<std::string> client_environment(const shepherd::Plan& plan,
                                            const std::string& directory, std::uint16_t port);

}  // namespace score::pmix
