#pragma once
// Tells the processes of one job from all others when they connect to a TCP port of this host. The
// kernel names the user and the cgroup of a socket (sock_diag(7)), so a client need not prove
// anything.

#include <cstdint>

namespace score::shepherd {

// Returns true if a client that is connected to this port of 127.0.0.1 belongs to this process's
// user and cgroup. Where the kernel names no cgroup (before Linux 5.9, or without cgroup2), the
// user decides; without sock_diag the result is true.
[[nodiscard]] bool has_own_client(std::uint16_t port);

// Returns the same for the other end of this connection, which must be IPv4 and within this host. A
// client that has ended is not our own. The result is true for a socket of another family.
[[nodiscard]] bool is_own_client(int connection);

}  // namespace score::shepherd
