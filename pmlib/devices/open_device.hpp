// Opens the packet devices that a context names.
#pragma once

#include "pmlib/core/packet_device.hpp"

#include <memory>

namespace score::pm {

// Some peer is reached by frames.
bool needs_device(const Segment& segment);

// The device of the context, or a trunk of all its links. `fd` is a socket opened for the
// first, taken over, or -1. Null with `error` 0 if no peer needs one, else
// with an errno: EMSGSIZE if a link's MTU does not hold the context's payload.
std::unique_ptr<PacketDevice> open_device(const Segment& segment, int fd, int& error);

}  // namespace score::pm
