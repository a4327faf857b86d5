#include "pmlib/devices/open_device.hpp"

#include "pmlib/devices/ethernet_device.hpp"
#include "pmlib/devices/ofi_device.hpp"
#include "pmlib/devices/path_device.hpp"
#include "pmlib/devices/trunk_device.hpp"
#include "pmlib/devices/udp_device.hpp"

#include <cerrno>
#include <ctime>
#include <unistd.h>

namespace score::pm {

namespace {

// Returns the key in frames, which is 0 if frames carry tags.
std::uint64_t visible_key(const SegmentHeader& h) {
  return h.auth == FrameAuth::Tag ? 0 : h.key;
}

std::unique_ptr<PacketDevice> open_ethernet(const Segment& segment, const char* interface, int fd,
                                            int& error) {
  const SegmentHeader& h = segment.header();
  if (fd < 0) fd = open_ethernet_socket({interface, h.channel, h.rank, visible_key(h)});
  if (fd >= 0) return EthernetDevice::attach(fd, error);
  error = -fd;
  return nullptr;
}

// A socket that was passed in may be a channel that jobs use in turn, so it gets no filter.
std::unique_ptr<PacketDevice> open_udp(const SegmentHeader& h, const PeerAddress& own, int fd,
                                       std::size_t frame_bytes, int& error) {
  auto device = fd >= 0 ? std::make_unique<UdpDevice>(fd, frame_bytes)
                        : UdpDevice::open(own, frame_bytes, error);
  if (device && fd < 0) device->drop_foreign(h.channel, h.rank, visible_key(h));
  if (device && frame_bytes > PathLimits().floor) device->drop_oversize();
  return device;
}

Microseconds monotonic_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<Microseconds>(now.tv_sec * 1'000'000 + now.tv_nsec / 1000);
}

std::unique_ptr<PacketDevice> open_link(const Segment& segment, std::size_t index, int fd,
                                        int& error) {
  const SegmentHeader& h = segment.header();
  const std::size_t frame_bytes = sizeof(FrameHeader) + segment.geometry().payload_bytes;
  std::unique_ptr<PacketDevice> device;
  error = 0;
  switch (index == 0 ? h.device.kind : h.more_links[index - 1].kind) {
    case DeviceKind::None:
      error = ENODEV;
      break;
    case DeviceKind::Udp:
      device = open_udp(h, segment.link_address(index, h.rank), fd, frame_bytes, error);
      break;
    case DeviceKind::Ethernet:
      device = open_ethernet(
          segment, index == 0 ? h.device.interface.data() : h.more_links[index - 1].name.data(), fd,
          error);
      break;
    case DeviceKind::Ofi:
      // The socket was opened only to reserve the port.
      if (fd >= 0) close(fd);
      return OfiDevice::open(segment, index, error);
  }
  if (device && device->frame_bytes() < frame_bytes) {
    error = EMSGSIZE;
    device.reset();
  }
  if (!device || frame_bytes <= PathLimits().floor) return device;
  return std::make_unique<PathDevice>(segment, std::move(device), index, monotonic_us);
}

}  // namespace

bool needs_device(const Segment& segment) {
  for (std::uint32_t i = 0; i < segment.geometry().size; ++i) {
    if (segment.peer(i).route == Route::Packet) return true;
  }
  return false;
}

std::unique_ptr<PacketDevice> open_device(const Segment& segment, std::span<const int> fds,
                                          int& error) {
  error = 0;
  if (!needs_device(segment)) return nullptr;
  TrunkDevice::Links links;
  for (std::uint32_t i = 0; i < segment.geometry().links; ++i) {
    auto link = open_link(segment, i, i < fds.size() ? fds[i] : -1, error);
    if (!link) return nullptr;
    links.push_back(std::move(link));
  }
  if (links.size() == 1) return std::move(links[0]);
  return TrunkDevice::make(segment, std::move(links), error);
}

}  // namespace score::pm
