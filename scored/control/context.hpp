#pragma once
// Makes the PM contexts of a daemon. They are small, use tagged frames, and carry only datagrams.

#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "pmlib/endpoint/endpoint.hpp"
#include "scored/control/roster.hpp"

#include <memory>
#include <netinet/in.h>

namespace score::control {

// Names the contexts of a daemon; the value is the channel of its frames.
enum class Use : std::uint8_t {
  Main = 0,      // of the main loop
  Meetings = 1,  // of the switcher's thread
};

// Returns a UDP socket that is bound to `local` and any port. Errors: errno codes.
[[nodiscard]] Result<UniqueFd> open_socket(in_addr local);
// Returns the address at which a socket of open_socket() is reached.
[[nodiscard]] pm::PeerAddress address_of(int socket);

// Opens an endpoint of rank `rank` over `socket`; it takes half a megabyte with 4,096 members. Its
// functions neither block nor allocate, except opening and closing. Errors: errno codes; NotFound
// if the rank is not a member.
[[nodiscard]] Result<std::unique_ptr<pm::Endpoint>> open_context(const Roster& roster,
                                                                 std::uint32_t rank, Use use,
                                                                 UniqueFd socket);

}  // namespace score::control
