#include "pmlib/fi/peers/own_context.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/random.h>

namespace score::pm::fi {

namespace {

constexpr std::uint32_t kPeers = 1024;
constexpr std::uint32_t kMostPeers = 32768;
constexpr std::uint32_t kPayload = 1424;

std::uint32_t number_from_environment(const char* name, std::uint32_t otherwise,
                                      std::uint32_t most) {
  const char* text = std::getenv(name);
  if (text == nullptr) return otherwise;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  return *end == '\0' && value > 0 && value <= most ? static_cast<std::uint32_t>(value) : otherwise;
}

std::uint32_t first_interface() {
  ifaddrs* all = nullptr;
  std::uint32_t ip = htonl(INADDR_LOOPBACK);
  if (getifaddrs(&all) != 0) return ip;
  for (const ifaddrs* i = all; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    if ((i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0) continue;
    sockaddr_in in{};
    std::memcpy(&in, i->ifa_addr, sizeof in);
    ip = in.sin_addr.s_addr;
    break;
  }
  freeifaddrs(all);
  return ip;
}

bool make_name(std::uint32_t ip, const UdpDevice& device, std::uint32_t payload, Name& name) {
  const PeerAddress own = device.own_address();
  name.kind = NameKind::Udp;
  name.ip = ip;
  std::memcpy(&name.udp_port, own.bytes.data() + 4, 2);
  name.payload = static_cast<std::uint16_t>(payload);
  return getrandom(&name.key, sizeof name.key, 0) == ssize_t{sizeof name.key};
}

std::unique_ptr<UdpDevice> open_socket(std::uint16_t udp_port, std::size_t frame_bytes,
                                       int& error) {
  PeerAddress own;
  std::memcpy(own.bytes.data() + 4, &udp_port, 2);
  auto device = UdpDevice::open(own, frame_bytes, error);
  if (device || error != EADDRINUSE) return device;
  return UdpDevice::open(PeerAddress(), frame_bytes, error);  // names contain the port
}

std::unique_ptr<MappedSegment> make_segment(std::uint64_t key, std::uint32_t payload, int& error) {
  Geometry geometry;
  geometry.size = number_from_environment("FI_PM_PEERS", kPeers, kMostPeers);
  geometry.payload_bytes = payload;
  SegmentIdentity identity;
  identity.key = key;
  identity.device.kind = DeviceKind::Udp;
  auto context = MappedSegment::create(geometry, identity, error);
  if (!context) return nullptr;
  for (std::uint32_t i = 0; i < geometry.size; ++i) {
    context->segment().peer(i).route = i == 0 ? Route::Self : Route::Packet;
  }
  return context;
}

}  // namespace

std::uint32_t own_ip(std::uint32_t ip) {
  if (ip != 0) return ip;
  const char* text = std::getenv("FI_PM_IP");
  in_addr address{};
  if (text != nullptr && inet_pton(AF_INET, text, &address) == 1) return address.s_addr;
  return first_interface();
}

OwnContext open_own_context(std::uint32_t ip, std::uint16_t udp_port, int& error) {
  OwnContext own;
  const std::uint32_t payload =
      std::max(kMinPayload, number_from_environment("FI_PM_PAYLOAD", kPayload, kMaxPayload));
  auto device = open_socket(udp_port, sizeof(FrameHeader) + payload, error);
  if (!device) return own;
  error = EIO;
  if (!make_name(own_ip(ip), *device, payload, own.name)) return own;
  auto context = make_segment(own.name.key, payload, error);
  if (!context) return own;
  const std::uint32_t size = context->segment().geometry().size;
  auto directory = std::make_unique<Directory>(std::move(device), own.name, size);
  own.directory = directory.get();
  auto no_peer_near = [](std::uint32_t) { return -1; };
  own.endpoint =
      pm::Endpoint::make(std::move(context), std::move(directory), no_peer_near, {}, error);
  return own;
}

}  // namespace score::pm::fi
