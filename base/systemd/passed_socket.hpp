#pragma once
// Socket activation: takes the socket that the service manager listens on (sd_listen_fds(3)).

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <optional>
#include <string>

namespace score::inline base {

// The listening Unix stream socket that was passed to this process. nullopt: none was passed.
// Errors: Malformed (more than one descriptor, or another kind of socket, or it listens on another
// path than `path`). A second call finds nothing: the environment variables are removed.
[[nodiscard]] Result<std::optional<UniqueFd>> take_passed_socket(const std::string& path);

}  // namespace score::inline base
