// These functions open the packet devices that a context names.
#pragma once

#include "pmlib/core/packet_device.hpp"

#include <memory>
#include <span>

namespace score::pm {

// Returns true if some peer is reached by frames.
bool needs_device(const Segment& segment);

// Opens the device of the context, or a trunk of all its links. `fds` are sockets opened for the
// links, in their order, and are taken over; -1 or a missing one means not opened yet. Returns null
// with `error` 0 if no peer needs a device. Otherwise null comes with an errno: EMSGSIZE if a
// link's MTU does not hold the context's payload.
std::unique_ptr<PacketDevice> open_device(const Segment& segment, std::span<const int> fds,
                                          int& error);

}  // namespace score::pm
