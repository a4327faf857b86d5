#pragma once
// PM contexts of a daemon: small, of tagged frames, and only for datagrams.

#include "base/os/fd.hpp"
#include "base/result.hpp"
#include "pmlib/endpoint/endpoint.hpp"
#include "scored/control/roster.hpp"

#include <memory>
#include <netinet/in.h>

namespace score::control {

// Which of a daemon's contexts; the channel of its frames.
enum class Use : std::uint8_t {
  Main = 0,      // of the main loop
  Meetings = 1,  // of the switcher's thread
};

// A bound UDP socket at `local`, any port. Errors: errno codes.
[[nodiscard]] Result<UniqueFd> open_socket(in_addr local);
// Where a socket of open_socket() is reached.
[[nodiscard]] pm::PeerAddress address_of(int socket);

// An endpoint of rank `rank` over `socket`: half a megabyte with 4,096 members. Its functions
// neither block nor allocate, except opening and closing. Errors: errno codes; NotFound: the rank
// is no member.
[[nodiscard]] Result<std::unique_ptr<pm::Endpoint>> open_context(const Roster& roster,
                                                                 std::uint32_t rank, Use use,
                                                                 UniqueFd socket);

}  // namespace score::control
