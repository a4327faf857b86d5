#include "scored/control/context.hpp"

#include "pmlib/devices/udp_device.hpp"
#include "scored/control/control_message.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <utility>

namespace score::control {

namespace {

constexpr std::uint32_t kReceiveBuffers = 64;  // more than a channel takes from its device at once

// Keeps everything that only messages and remote memory need as small as possible.
pm::Geometry geometry_of(std::size_t members) {
  pm::Geometry g;
  g.size = static_cast<std::uint32_t>(members);
  g.send_buffers = g.descriptors = 2;
  g.receive_buffers = kReceiveBuffers;
  g.regions = g.operations = 1;
  g.inbox_entries = 8;
  g.pool_buffers = 1;
  g.pool_buffer_bytes = 256;
  return g;
}

static_assert(kMostDatagramBytes <= pm::Geometry().payload_bytes);

void fill_addresses(const pm::Segment& segment, const Roster& roster, Use use) {
  for (std::uint32_t i = 0; i < roster.members.size(); ++i) {
    const MemberAddress& member = roster.members[i];
    segment.peer(i).route = pm::Route::Packet;
    segment.peer(i).address = use == Use::Main ? member.main : member.meetings;
  }
  segment.peer(segment.header().rank).route = pm::Route::None;
}

}  // namespace

Result<UniqueFd> open_socket(in_addr local) {
  UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fail(errno_code(errno), "cannot make a UDP socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr = local;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return fail(errno_code(errno), "cannot bind a UDP socket");
  }
  return fd;
}

pm::PeerAddress address_of(int socket) {
  sockaddr_in in{};
  socklen_t length = sizeof in;
  pm::PeerAddress address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&in), &length) != 0) return address;
  std::memcpy(address.bytes.data(), &in.sin_addr, 4);
  std::memcpy(address.bytes.data() + 4, &in.sin_port, 2);
  return address;
}

Result<std::unique_ptr<pm::Endpoint>> open_context(const Roster& roster, std::uint32_t rank,
                                                   Use use, UniqueFd socket) {
  if (!roster.has(rank)) return fail(Errc::NotFound, "rank {} is not in the roster", rank);
  const pm::Geometry geometry = geometry_of(roster.members.size());
  int error = 0;
  auto segment = pm::MappedSegment::create(geometry,
                                           {.key = roster.key,
                                            .generation = roster.generation,
                                            .rank = rank,
                                            .channel = static_cast<std::uint16_t>(use),
                                            .window = 1,
                                            .auth = pm::FrameAuth::Tag},
                                           error);
  if (!segment) return fail(errno_code(std::abs(error)), "cannot make a PM context");
  fill_addresses(segment->segment(), roster, use);
  auto device = std::make_unique<pm::UdpDevice>(socket.release(),
                                                sizeof(pm::FrameHeader) + geometry.payload_bytes);
  device->ignore_refusals();
  auto endpoint = pm::Endpoint::make(
      std::move(segment), std::move(device), [](std::uint32_t) { return -1; }, {}, error);
  if (!endpoint) return fail(errno_code(error), "cannot open a PM context");
  return endpoint;
}

}  // namespace score::control
