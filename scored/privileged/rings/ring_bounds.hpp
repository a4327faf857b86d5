// Bounds a ring, in the rings' network namespace, so that it need not be trusted: see rings.hpp.
// Everything that its holder could try has then been tried. The functions return 0, or an errno
// that is in `failure` too.
#pragma once

#include "scored/privileged/rings/protocol.hpp"

namespace score::rings {

// `table` contains the bounds by socket.
int bound_packet_ring(int fd, int table, const RingRequest& request, RingFailure& failure);

// Sets `failure` and returns -1.
int fail(RingFailure& failure, int error, const char* step);

}  // namespace score::rings
