// PM frames over a libfabric endpoint of type FI_EP_RDM: RDMA networks, and tcp, shm or udp;ofi_rxd
// for tests. The go-back-N runs above it as on any other network. That is more than a reliable
// endpoint needs, and it is what makes the context switchable: an endpoint cannot be saved, so at a
// switch it is dropped with all that is in flight, and the frames are sent again later.
//
// libfabric is loaded when the first device is opened; programs that use none do not need it.
#pragma once

#include "pmlib/core/packet_device.hpp"
#include "pmlib/core/segment.hpp"

#include <memory>

namespace score::pm {

class OfiDevice : public PacketDevice {
 public:
  // Loads libfabric into this process, which stays there.
  static bool has_provider(const char* provider);

  // Opens link `link` of the segment, 0 the device itself: an endpoint of its provider at its own
  // address, and enters the addresses of all peers. Null and an errno on failure; ENOSYS: no
  // libfabric or no such provider.
  static std::unique_ptr<PacketDevice> open(const Segment& segment, std::size_t link, int& error);
};

}  // namespace score::pm
