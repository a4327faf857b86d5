// OfiDevice sends PM frames over a libfabric endpoint of type FI_EP_RDM: RDMA networks, and tcp,
// shm or udp;ofi_rxd for tests. The go-back-N runs above it as on any other network. A reliable
// endpoint would not need it, but it makes the context switchable. An endpoint cannot be saved, so
// a switch drops it with all frames in flight, and the frames are resent later.
//
// libfabric is loaded when the first device is opened; programs that use none do not need it.
#pragma once

#include "pmlib/core/packet_device.hpp"
#include "pmlib/core/segment.hpp"

#include <memory>

namespace score::pm {

class OfiDevice : public PacketDevice {
 public:
  // Returns true if libfabric has the provider. Loads libfabric into this process, where it stays.
  static bool has_provider(const char* provider);

  // Opens link `link` of the segment, where 0 is the device itself. It opens an endpoint of the
  // link's provider at its own address and enters the addresses of all peers. Returns null and sets
  // `error` to an errno on failure; ENOSYS means that libfabric or the provider is missing.
  static std::unique_ptr<PacketDevice> open(const Segment& segment, std::size_t link, int& error);
};

}  // namespace score::pm
