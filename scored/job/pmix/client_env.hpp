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

// Returns the variables that Open MPI needs besides PMIx's own. directory: the directory of the
// server's files.
std::vector<std::string> open_mpi_variables(const shepherd::Plan& plan,
                                            const std::string& directory);

// Returns all variables except PMIX_RANK for a server that does not run yet and will accept
// connections at this port of the loopback interface. A running server lists its own:
// PMIx_server_setup_fork().
std::vector<std::string> client_environment(const shepherd::Plan& plan,
                                            const std::string& directory, std::uint16_t port);

}  // namespace score::pmix
