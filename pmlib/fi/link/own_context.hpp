// A PM context of a process that no job has given one: a UDP socket, a random key, and room for
// peers that become known later.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/fi/link/directory.hpp"
#include "pmlib/fi/link/name.hpp"

#include <cstdint>
#include <memory>

namespace score::pm::fi {

struct OwnContext {
  std::unique_ptr<pm::Endpoint> endpoint;  // null on failure
  Directory* directory = nullptr;          // its device
  Name name;
};

// The IPv4 address that others reach this host by, network order: `ip`, or if that is 0 FI_PM_IP,
// else that of the first interface which is up.
std::uint32_t own_ip(std::uint32_t ip);

// `ip` as for own_ip(). `udp_port`, network order: of the socket; another one if it is 0 or taken.
OwnContext open_own_context(std::uint32_t ip, std::uint16_t udp_port, int& error);

}  // namespace score::pm::fi
