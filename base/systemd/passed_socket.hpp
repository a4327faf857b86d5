#pragma once
// Implements socket activation: takes the socket on which the service manager listens
// (sd_listen_fds(3)).

#include "base/os/fd.hpp"
#include "base/result.hpp"

#include <optional>
#include <string>

namespace score::inline base {

// Returns the listening Unix stream socket that was passed to this process, or nullopt if none was
// passed. A second call finds none, because the environment variables are removed. Errors:
// Malformed (more than one descriptor, a different kind of socket, or a socket that listens on a
// path other than `path`).
[[nodiscard]] Result<std::optional<UniqueFd>> take_passed_socket(const std::string& path);

}  // namespace score::inline base
