// Opens a PM context for a process without a job: a UDP socket, a random key, and room for peers
// that become known later.
#pragma once

#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/fi/peers/directory.hpp"
#include "pmlib/fi/peers/name.hpp"

#include <cstdint>
#include <memory>

namespace score::pm::fi {

struct OwnContext {
  std::unique_ptr<pm::Endpoint> endpoint;  // null on failure
  Directory* directory = nullptr;          // its device
  Name name;
};

// Returns the IPv4 address by which other hosts reach this one, in network order: `ip`; if that is
// 0, FI_PM_IP; otherwise the address of the first interface that is up.
std::uint32_t own_ip(std::uint32_t ip);

// `ip` is used as in own_ip(). `udp_port` is the port of the socket in network order; if it is 0 or
// taken, a different port is chosen.
OwnContext open_own_context(std::uint32_t ip, std::uint16_t udp_port, int& error);

}  // namespace score::pm::fi
