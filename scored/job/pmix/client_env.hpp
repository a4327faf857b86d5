#pragma once
// The variables by which a task finds the PMIx server of its node.

#include "scored/job/plan/plan.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::pmix {

// The server's name space; its rank is the node's index.
inline constexpr std::string_view kServerName = "scored-pmix";

// What Open MPI needs besides PMIx's own variables. directory: of the server's files.
std::vector<std::string> open_mpi_variables(const shepherd::Plan& plan,
                                            const std::string& directory);

// All of them, except PMIX_RANK, of a server that does not run yet and will accept connections at
// this port of the loopback. A server that runs lists its own: PMIx_server_setup_fork().
std::vector<std::string> client_environment(const shepherd::Plan& plan,
                                            const std::string& directory, std::uint16_t port);

}  // namespace score::pmix
