// Opens AF_XDP sockets for Ethernet frames of PM, with all that belongs to them, on behalf of a
// process without the privilege to do so.
//
// The program at the interface hands frames of one channel and rank to the socket and leaves all
// others to the kernel. It is attached in the generic mode, and the socket copies: so it works on
// every interface, and what is sent goes through the layers below the interface, with their
// filters, as a copy that the sender cannot change any more. One socket has one receive queue: an
// interface for each context, or with one queue for one context.
//
// The parts travel as one descriptor, the end of a Unix socket that holds a message with all of
// them. It can be unpacked any number of times.
#pragma once

#include "pmlib/core/segment.hpp"
#include "pmlib/devices/ethernet_device.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

struct xdp_desc;

namespace score::pm {

// The memory of frames: first kXdpReceive to be received into, then kXdpSend to be sent from.
constexpr std::uint32_t kXdpReceive = 128;  // a window of one sender fits
constexpr std::uint32_t kXdpSend = 64;

// Where PM's frame begins in the place that it is received into: its header and a short payload
// share one cache line.
constexpr std::size_t kXdpFrameAt = 320;

struct XdpShape {
  std::uint32_t magic = 0;
  std::uint32_t space = 0;        // bytes of a frame's place, with the kernel's headroom
  std::uint32_t frame_bytes = 0;  // of PM at most
  PeerAddress own{};              // of the interface
  std::uint16_t reserved = 0;

  std::size_t bytes() const { return std::size_t{space} * (kXdpReceive + kXdpSend); }

  // For an interface of this MTU; space 0: too large, a frame has to fit in a page.
  static XdpShape of(std::size_t mtu);
};

// The process that holds these descriptors owns the socket.
struct XdpParts {
  XdpShape shape{};
  int socket = -1;
  int memory = -1;   // of the frames
  int program = -1;  // its link to the interface, which ends with it
};

void close_parts(XdpParts& parts);

// 0 or a negative errno, and what failed in `step`: EMSGSIZE for an MTU that is too large, EBUSY
// if there is such a socket already. `place.generation` 0: not looked at.
int open_xdp_parts(const EthernetPlace& place, XdpParts& parts, const char*& step);

// A descriptor or a negative errno. The parts stay.
int pack_xdp_parts(const XdpParts& parts);
int unpack_xdp_parts(int parcel, XdpParts& parts);

// The address that the socket of a packed or of an AF_PACKET socket has. False: neither.
bool ethernet_address_of(int fd, PeerAddress& address);

// One of the four rings that process and kernel share, of entries of type T.
template <class T>
struct XdpRing {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  std::uint32_t* producer = nullptr;
  std::uint32_t* consumer = nullptr;
  T* entries = nullptr;  // a power of two
  std::uint32_t mask = 0;

  T& at(std::uint32_t index) const { return entries[index & mask]; }
};

struct XdpRings {
  XdpRings() = default;
  ~XdpRings();
  XdpRings(const XdpRings&) = delete;
  XdpRings& operator=(const XdpRings&) = delete;

  // 0 or an errno.
  int map(int socket);

  XdpRing<xdp_desc> received, sent;
  XdpRing<std::uint64_t> free, completed;  // addresses
};

}  // namespace score::pm
