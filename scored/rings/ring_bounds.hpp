// Makes a ring one that needs not be trusted, in the rings' network namespace: see rings.hpp. It
// has been tried then what its holder could try. 0, or an errno that is in `failure` too.
#pragma once

#include "pmlib/devices/xdp_socket.hpp"
#include "scored/rings/protocol.hpp"

namespace score::rings {

// `table`: of the bounds by socket.
int bound_packet_ring(int fd, int table, const Request& request, Failure& failure);
int bound_xdp(const pm::XdpParts& parts, int table, const Request& request, Failure& failure);

// Sets `failure`; -1.
int fail(Failure& failure, int error, const char* step);

}  // namespace score::rings
