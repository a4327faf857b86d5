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

// `ip`: IPv4 address in network order that others reach this host by; 0: FI_PM_IP if set, else that
// of the first interface which is up.
OwnContext open_own_context(std::uint32_t ip, int& error);

}  // namespace score::pm::fi
