// These functions open AF_XDP sockets for PM's Ethernet frames, with everything they need, on
// behalf of a process without the privilege to do so.
//
// The program at the interface passes frames of one channel and rank to the socket and leaves all
// others to the kernel. It is attached in the generic mode, and the socket copies, so it works on
// every interface. A sent frame passes through the layers below the interface, with their filters,
// as a copy that the sender can no longer change. One socket serves one receive queue, so each
// context needs its own interface with one receive queue.
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

// These are the frames in the shared memory: first kXdpReceive for receiving, then kXdpSend for
// sending.
constexpr std::uint32_t kXdpReceive = 128;  // holds the window of one sender
constexpr std::uint32_t kXdpSend = 64;

// PM's frame begins at this offset in its place, so that its header and a short payload share one
// cache line.
constexpr std::size_t kXdpFrameAt = 320;

struct XdpShape {
  std::uint32_t magic = 0;
  std::uint32_t space = 0;        // bytes of a frame's place, with the kernel's headroom
  std::uint32_t frame_bytes = 0;  // largest frame of PM
  PeerAddress own{};              // of the interface
  std::uint16_t reserved = 0;

  std::size_t bytes() const { return std::size_t{space} * (kXdpReceive + kXdpSend); }

  // Returns the shape for an interface of this MTU; space 0 means that the MTU is too large,
  // because a frame must fit in a page.
  static XdpShape of(std::size_t mtu);
};

// A process that holds these descriptors owns the socket.
struct XdpParts {
  XdpShape shape{};
  int socket = -1;
  int memory = -1;   // memory of the frames
  int program = -1;  // its link to the interface, which ends when this is closed
};

void close_parts(XdpParts& parts);

// Returns 0 or a negative errno, with the failed action in `step`: EMSGSIZE if the MTU is too
// large, EBUSY if there is such a socket already. A `place.generation` of 0 is not checked.
int open_xdp_parts(const EthernetPlace& place, XdpParts& parts, const char*& step);

// Returns a descriptor or a negative errno. The parts stay open.
int pack_xdp_parts(const XdpParts& parts);
int unpack_xdp_parts(int parcel, XdpParts& parts);

// Finds the address of a packed AF_XDP socket or an AF_PACKET socket. Returns false if `fd` is
// neither.
bool ethernet_address_of(int fd, PeerAddress& address);

// An XdpRing is one of the four rings that process and kernel share, with entries of type T.
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

  // Returns 0 or an errno.
  int map(int socket);

  XdpRing<xdp_desc> received, sent;
  XdpRing<std::uint64_t> free, completed;  // addresses
};

}  // namespace score::pm
