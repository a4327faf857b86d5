// On one node the server creates both contexts as memory files, and the client opens them through
// /proc. This needs no socket to pass descriptors, and works only for processes of one user. Before
// a file is opened, it is checked to be a memory file, and PM then checks that it is a context with
// this key.
#include "pario/channel/endpoints.hpp"

#include "pmlib/network/network.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

namespace score::pario {
namespace {

// These sizes are packets of 1,500 and 9,000 bytes, less the headers of IP and UDP. Larger packets
// would cost more memory per context than they save in time.
constexpr std::uint32_t kHeaders = 20 + 8 + sizeof(pm::FrameHeader);
constexpr std::uint32_t kUsualPayload = 1'500 - kHeaders;
constexpr std::uint32_t kMostPayload = 9'000 - kHeaders;
constexpr std::uint32_t kLeastPayload = 512;  // every path of IPv4 carries this

pm::JobNetwork network_of(std::uint64_t key, pm::DeviceKind device) {
  pm::JobNetwork network;
  network.key = key;
  network.device.kind = device;
  network.ranks.assign(2, {"host", device == pm::DeviceKind::Udp ? "127.0.0.1:0" : "-"});
  return network;
}

// Opens a memory file of process `process` anew. Returns a negative value if it is none.
int open_memory_file(std::uint32_t process, std::uint32_t fd) {
  const std::string path = "/proc/" + std::to_string(process) + "/fd/" + std::to_string(fd);
  std::array<char, 64> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size() - 1);
  if (length <= 0 || std::strncmp(target.data(), "/memfd:", 7) != 0) return -1;
  return ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
}

int finish(EndpointPtr made, int error, EndpointPtr& endpoint) {
  endpoint = std::move(made);
  if (endpoint) return 0;
  return error == 0 ? EIO : std::abs(error);
}

using SharedSegment = std::shared_ptr<pm::MappedSegment>;

pm::Shmem::OpenPeer opener(SharedSegment peer) {
  return
      [peer = std::move(peer)](std::uint32_t) { return ::fcntl(peer->fd(), F_DUPFD_CLOEXEC, 0); };
}

int address_of(const sockaddr_storage& from, AddressBytes& address) {
  if (from.ss_family != AF_INET) return EAFNOSUPPORT;
  const auto& in = reinterpret_cast<const sockaddr_in&>(from);
  std::memcpy(address.data(), &in.sin_addr, 4);
  return 0;
}

}  // namespace

int make_near(std::uint64_t key, EndpointPtr& endpoint, ChannelOffer& offer) {
  const pm::JobNetwork network = network_of(key, pm::DeviceKind::None);
  int error = 0;
  auto own = pm::create_context(network, kServerRank, true, "", error);
  if (!own) return finish(nullptr, error, endpoint);
  SharedSegment peer = pm::create_context(network, kClientRank, true, "", error);
  if (!peer) return finish(nullptr, error, endpoint);
  offer = {key, 0, static_cast<std::uint32_t>(::getpid()), static_cast<std::uint32_t>(own->fd()),
           static_cast<std::uint32_t>(peer->fd())};
  auto made = pm::Endpoint::make(std::move(own), nullptr, opener(std::move(peer)), {}, error);
  return finish(std::move(made), error, endpoint);
}

int open_near(const ChannelOffer& offer, EndpointPtr& endpoint) {
  int error = 0;
  const int fd = open_memory_file(offer.process, offer.client_context);
  if (fd < 0) return ESRCH;
  auto own = pm::MappedSegment::attach(fd, error);
  if (!own || own->segment().header().key != offer.key ||
      own->segment().header().rank != kClientRank) {
    return ESRCH;
  }
  const int peer_fd = open_memory_file(offer.process, offer.server_context);
  if (peer_fd < 0) return ESRCH;
  SharedSegment peer = pm::MappedSegment::attach(peer_fd, error);
  if (!peer || peer->segment().header().key != offer.key) return ESRCH;
  auto made = pm::Endpoint::make(std::move(own), nullptr, opener(std::move(peer)), {}, error);
  return finish(std::move(made), error, endpoint);
}

bool is_payload(std::uint32_t payload) {
  return payload >= kLeastPayload && payload <= kMostPayload;
}

// TCP knows from the other end which packet size that end can receive.
std::uint32_t payload_of_path(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return kUsualPayload;
  constexpr std::uint32_t kTcpHeaders = 40;
  constexpr std::uint32_t kTimes = 12;
  const bool has_times = (info.tcpi_options & TCPI_OPT_TIMESTAMPS) != 0;
  const std::uint32_t packet =
      std::min(info.tcpi_pmtu, info.tcpi_snd_mss + kTcpHeaders + (has_times ? kTimes : 0));
  return std::clamp(packet, kLeastPayload + kHeaders, kMostPayload + kHeaders) - kHeaders;
}

int open_udp_socket(const AddressBytes& own, std::uint32_t payload, UdpSocket& socket) {
  int error = 0;
  pm::PeerAddress address;
  address.bytes = own;
  const std::size_t frame = sizeof(pm::FrameHeader) + payload;
  socket.device = pm::UdpDevice::open(address, frame, error);
  if (!socket.device) return error;
  socket.address = socket.device->own_address().bytes;
  return 0;
}

int make_udp(UdpSocket socket, const UdpPair& pair, std::uint32_t rank, const AddressBytes& peer,
             EndpointPtr& endpoint) {
  int error = 0;
  pm::JobNetwork network = network_of(pair.key, pm::DeviceKind::Udp);
  network.payload_bytes = pair.payload;
  auto context = pm::create_context(network, rank, false, "", error);
  if (!context) return finish(nullptr, error, endpoint);
  socket.device->drop_foreign(0, rank, pair.key);
  context->segment().peer(rank).address.bytes = socket.address;
  context->segment().peer(1 - rank).address.bytes = peer;
  auto made = pm::Endpoint::make(std::move(context), std::move(socket.device), nullptr, {}, error);
  return finish(std::move(made), error, endpoint);
}

int own_host(int fd, AddressBytes& address) {
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) != 0) return errno;
  return address_of(own, address);
}

bool is_same_host(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  AddressBytes own{};
  AddressBytes other{};
  return own_host(fd, own) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
         address_of(peer, other) == 0 && own == other;
}

}  // namespace score::pario
