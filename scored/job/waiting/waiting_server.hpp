#pragma once
// A program that serves the tasks and runs like them: it is born in their cgroup, is frozen with
// them and has their limits and devices. Until it is needed, a copy of the spawner waits in its
// place, which costs almost nothing.

#include "base/os/fd.hpp"

#include <span>

namespace score::shepherd {

// Names the descriptors of the program, in this order.
inline constexpr int kServerSocketFd = 3;    // stream socket to the shepherd
inline constexpr int kServerListenerFd = 4;  // TCP socket of 127.0.0.1 that listens

// Forks a process that becomes scored-pmix when the shepherd sends data on the socket. When a task
// of this user and cgroup connects to the listener, the process sends PmixWanted; it closes the
// connections of strangers. It ends with the socket. Returns false if it cannot be forked.
bool fork_waiting_server(std::span<const base::UniqueFd> descriptors);

}  // namespace score::shepherd
