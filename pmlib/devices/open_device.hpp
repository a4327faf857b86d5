// Opens the packet devices that a context names.
#pragma once

#include "pmlib/core/packet_device.hpp"

#include <memory>
#include <span>

namespace score::pm {

// Some peer is reached by frames.
bool needs_device(const Segment& segment);

// The device of the context, or a trunk of all its links. `fds`: sockets opened for them, in their
// order, taken over; -1 or none: not opened yet. Null with `error` 0 if no peer needs a device,
// else with an errno: EMSGSIZE if a link's MTU does not hold the context's payload.
std::unique_ptr<PacketDevice> open_device(const Segment& segment, std::span<const int> fds,
                                          int& error);

}  // namespace score::pm
