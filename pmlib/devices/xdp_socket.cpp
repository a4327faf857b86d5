#include "pmlib/devices/xdp_socket.hpp"

#include "pmlib/wire/ebpf.hpp"
#include "pmlib/wire/frame.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::pm {

namespace {

constexpr std::uint32_t kMagic = 0x50445831;       // "1XDP"
constexpr std::size_t kKernelHeadroom = 256;       // XDP_PACKET_HEADROOM
constexpr std::uint32_t kOnly = 0;                 // queue of the interface, and key of the map
constexpr std::size_t kParts = 3;                  // descriptors
constexpr std::uint32_t kSpaces[] = {2048, 4096};  // sizes that the kernel accepts, below a page

// ---- the interface

struct Asked {
  explicit Asked(const char* interface) : fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
  }

  ~Asked() { close(fd); }

  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;

  bool ask(unsigned long what) { return ioctl(fd, what, &request) == 0; }

  int fd;
  ifreq request{};
};

// A driver that does not report the number has one queue.
std::uint32_t receive_queues(Asked& asked) {
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  asked.request.ifr_data = reinterpret_cast<char*>(&channels);
  return asked.ask(SIOCETHTOOL) ? channels.rx_count + channels.combined_count : 1;
}

int describe(const char* interface, XdpShape& shape, int& index) {
  index = static_cast<int>(if_nametoindex(interface));
  if (index == 0) return -errno;
  Asked asked(interface);
  if (!asked.ask(SIOCGIFMTU)) return -errno;
  shape = XdpShape::of(static_cast<std::size_t>(std::max(asked.request.ifr_mtu, 0)));
  if (shape.space == 0) return -EMSGSIZE;
  if (!asked.ask(SIOCGIFHWADDR)) return -errno;
  std::memcpy(shape.own.bytes.data(), asked.request.ifr_hwaddr.sa_data, ETH_ALEN);
  return receive_queues(asked) > 1 ? -EOPNOTSUPP : 0;
}

// ---- the program

constexpr std::size_t kLookedAt =
    kEthernetHeader + offsetof(FrameHeader, destination) + sizeof(FrameHeader::destination);
constexpr int kPacket = BPF_REG_2, kFound = BPF_REG_4, kWanted = BPF_REG_5;

// Continues if the field is `wanted`, else leaves the frame to the kernel.
void require(EbpfProgram& program, int size, std::size_t at, std::uint64_t wanted) {
  ebpf::append(program, {ebpf::load(size, kFound, kPacket, at)});
  ebpf::append_constant(program, kWanted, wanted);
  ebpf::append(program, {ebpf::exit_if_register(BPF_JNE, kFound, kWanted)});
}

EbpfProgram pass_to_socket(const EthernetPlace& place, int map) {
  EbpfProgram program;
  ebpf::append(program, {ebpf::set(BPF_REG_0, XDP_PASS),
                         ebpf::load(BPF_W, kPacket, ebpf::kArgument, offsetof(xdp_md, data)),
                         ebpf::load(BPF_W, BPF_REG_3, ebpf::kArgument, offsetof(xdp_md, data_end)),
                         ebpf::copy(kFound, kPacket), ebpf::add(kFound, kLookedAt),
                         ebpf::exit_if_register(BPF_JGT, kFound, BPF_REG_3)});
  const auto field = [](std::size_t offset) { return kEthernetHeader + offset; };
  require(program, BPF_H, 2 * ETH_ALEN, htons(kEtherType));
  require(program, BPF_H, field(offsetof(FrameHeader, channel)), place.channel);
  require(program, BPF_W, field(offsetof(FrameHeader, destination)), place.rank);
  if (place.generation != 0) {
    require(program, BPF_W, field(offsetof(FrameHeader, generation)), place.generation);
  }
  if (place.key != 0) require(program, BPF_DW, field(offsetof(FrameHeader, key)), place.key);
  ebpf::append_map(program, BPF_REG_1, map);
  ebpf::append(program, {ebpf::set(BPF_REG_2, kOnly), ebpf::set(BPF_REG_3, XDP_PASS),
                         ebpf::call(BPF_FUNC_redirect_map)});
  return ebpf::complete(std::move(program));
}

// Returns the link, or a negative errno.
int attach_program(const EthernetPlace& place, int interface, int socket) {
  bpf_attr attributes = bpf_nothing();
  attributes.map_type = BPF_MAP_TYPE_XSKMAP;
  attributes.key_size = attributes.value_size = sizeof(std::uint32_t);
  attributes.max_entries = 1;
  const int map = bpf(BPF_MAP_CREATE, attributes);
  if (map < 0) return map;
  int link = bpf_set(map, &kOnly, &socket);
  if (link == 0) {
    attributes = bpf_nothing();
    attributes.prog_type = BPF_PROG_TYPE_XDP;
    link = bpf_load(pass_to_socket(place, map), attributes);
  }
  close(map);
  if (link < 0) return link;
  const int program = link;
  attributes = bpf_nothing();
  attributes.link_create.prog_fd = static_cast<std::uint32_t>(program);
  attributes.link_create.target_ifindex = static_cast<std::uint32_t>(interface);
  attributes.link_create.attach_type = BPF_XDP;
  attributes.link_create.flags = XDP_FLAGS_SKB_MODE;
  link = bpf(BPF_LINK_CREATE, attributes);
  close(program);
  return link;
}

// ---- the socket

// The kernel pins the memory from now on, even after it is unmapped here.
int give_memory(const XdpParts& parts) {
  const std::size_t bytes = parts.shape.bytes();
  if (ftruncate(parts.memory, static_cast<off_t>(bytes)) != 0) return -errno;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, parts.memory, 0);
  if (memory == MAP_FAILED) return -errno;
  xdp_umem_reg area{};
  area.addr = reinterpret_cast<std::uint64_t>(memory);
  area.len = bytes;
  area.chunk_size = parts.shape.space;
  area.headroom = kXdpFrameAt - kEthernetHeader - kKernelHeadroom;
  const bool given = setsockopt(parts.socket, SOL_XDP, XDP_UMEM_REG, &area, sizeof area) == 0;
  const int error = errno;
  munmap(memory, bytes);
  return given ? 0 : -error;
}

int make_rings(int socket) {
  const std::pair<int, std::uint32_t> rings[] = {{XDP_UMEM_FILL_RING, kXdpReceive},
                                                 {XDP_UMEM_COMPLETION_RING, kXdpSend},
                                                 {XDP_RX_RING, kXdpReceive},
                                                 {XDP_TX_RING, kXdpSend}};
  for (const auto& [ring, entries] : rings) {
    if (setsockopt(socket, SOL_XDP, ring, &entries, sizeof entries) != 0) return -errno;
  }
  return 0;
}

int offer_memory(const XdpParts& parts) {
  XdpRings rings;
  if (const int error = rings.map(parts.socket); error != 0) return -error;
  for (std::uint32_t i = 0; i < kXdpReceive; ++i) {
    rings.free.at(i) = std::uint64_t{i} * parts.shape.space;
  }
  std::atomic_ref(*rings.free.producer).store(kXdpReceive, std::memory_order_release);
  return 0;
}

int bind_to(int socket, int interface) {
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_flags = XDP_COPY;
  address.sxdp_ifindex = static_cast<std::uint32_t>(interface);
  address.sxdp_queue_id = kOnly;
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  return bind(socket, generic, sizeof address) == 0 ? 0 : -errno;
}

int open_parts(const EthernetPlace& place, XdpParts& parts, const char*& step) {
  int interface = 0;
  step = "check the interface";
  if (const int error = describe(place.interface, parts.shape, interface); error != 0) return error;
  step = "open an AF_XDP socket";
  parts.socket = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (parts.socket < 0) return -errno;
  step = "register frame memory with AF_XDP";
  parts.memory = memfd_create("pm-frames", MFD_CLOEXEC);
  if (parts.memory < 0) return -errno;
  if (const int error = give_memory(parts); error != 0) return error;
  step = "create the AF_XDP rings";
  if (const int error = make_rings(parts.socket); error != 0) return error;
  if (const int error = offer_memory(parts); error != 0) return error;
  step = "bind an AF_XDP socket";
  if (const int error = bind_to(parts.socket, interface); error != 0) return error;
  step = "attach an XDP program";
  parts.program = attach_program(place, interface, parts.socket);
  return std::min(parts.program, 0);
}

// ---- the parcel

union Rights {
  char bytes[CMSG_SPACE(kParts * sizeof(int))];
  cmsghdr align;
};

msghdr message_of(iovec& block, Rights* rights) {
  msghdr message{};
  message.msg_iov = &block;
  message.msg_iovlen = 1;
  if (rights == nullptr) return message;
  message.msg_control = rights->bytes;
  message.msg_controllen = sizeof rights->bytes;
  return message;
}

bool peek_shape(int parcel, XdpShape& shape, Rights* rights, msghdr& message) {
  int domain = 0;
  socklen_t size = sizeof domain;
  if (getsockopt(parcel, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 || domain != AF_UNIX) {
    return false;
  }
  iovec block{&shape, sizeof shape};
  message = message_of(block, rights);
  const ssize_t got = recvmsg(parcel, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  return got == sizeof shape && shape.magic == kMagic;
}

// ---- mapping

template <class T>
int map_ring(int socket, const xdp_ring_offset& offsets, std::uint32_t entries, off_t page,
             XdpRing<T>& ring) {
  ring.bytes = offsets.desc + entries * sizeof(T);
  void* memory =
      mmap(nullptr, ring.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, socket, page);
  if (memory == MAP_FAILED) return errno;
  ring.memory = static_cast<std::byte*>(memory);
  ring.producer = reinterpret_cast<std::uint32_t*>(ring.memory + offsets.producer);
  ring.consumer = reinterpret_cast<std::uint32_t*>(ring.memory + offsets.consumer);
  ring.entries = reinterpret_cast<T*>(ring.memory + offsets.desc);
  ring.mask = entries - 1;
  return 0;
}

template <class T>
void unmap_ring(XdpRing<T>& ring) {
  if (ring.memory != nullptr) munmap(ring.memory, ring.bytes);
}

}  // namespace

XdpShape XdpShape::of(std::size_t mtu) {
  for (const std::uint32_t space : kSpaces) {
    if (kXdpFrameAt + mtu > space) continue;
    XdpShape shape;
    shape.magic = kMagic;
    shape.space = space;
    shape.frame_bytes = static_cast<std::uint32_t>(mtu);
    return shape;
  }
  return {};
}

XdpRings::~XdpRings() {
  unmap_ring(received);
  unmap_ring(sent);
  unmap_ring(free);
  unmap_ring(completed);
}

int XdpRings::map(int socket) {
  xdp_mmap_offsets offsets{};
  socklen_t size = sizeof offsets;
  if (getsockopt(socket, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size) != 0) return errno;
  if (size != sizeof offsets) return EPROTO;  // before Linux 5.4
  int error = map_ring(socket, offsets.rx, kXdpReceive, XDP_PGOFF_RX_RING, received);
  if (error == 0) error = map_ring(socket, offsets.tx, kXdpSend, XDP_PGOFF_TX_RING, sent);
  if (error == 0) {
    error = map_ring(socket, offsets.fr, kXdpReceive, XDP_UMEM_PGOFF_FILL_RING, free);
  }
  if (error != 0) return error;
  return map_ring(socket, offsets.cr, kXdpSend, XDP_UMEM_PGOFF_COMPLETION_RING, completed);
}

void close_parts(XdpParts& parts) {
  for (int* fd : {&parts.socket, &parts.memory, &parts.program}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
}

int open_xdp_parts(const EthernetPlace& place, XdpParts& parts, const char*& step) {
  const int error = open_parts(place, parts, step);
  if (error != 0) close_parts(parts);
  return error;
}

int pack_xdp_parts(const XdpParts& parts) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, ends) != 0) return -errno;
  XdpShape shape = parts.shape;
  const int fds[kParts] = {parts.socket, parts.memory, parts.program};
  Rights rights{};
  iovec block{&shape, sizeof shape};
  msghdr message = message_of(block, &rights);
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(part), fds, sizeof fds);
  const ssize_t sent = sendmsg(ends[0], &message, MSG_DONTWAIT);
  const int error = errno;
  close(ends[0]);
  if (sent == sizeof shape) return ends[1];
  close(ends[1]);
  return -error;
}

int unpack_xdp_parts(int parcel, XdpParts& parts) {
  Rights rights{};
  msghdr message{};
  if (!peek_shape(parcel, parts.shape, &rights, message)) return -EINVAL;
  const cmsghdr* part = CMSG_FIRSTHDR(&message);
  int fds[kParts] = {-1, -1, -1};
  if (part == nullptr || part->cmsg_len != CMSG_LEN(sizeof fds)) return -EINVAL;
  std::memcpy(fds, CMSG_DATA(part), sizeof fds);
  parts.socket = fds[0];
  parts.memory = fds[1];
  parts.program = fds[2];
  return 0;
}

bool ethernet_address_of(int fd, PeerAddress& address) {
  sockaddr_ll bound{};
  socklen_t size = sizeof bound;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) == 0 &&
      bound.sll_family == AF_PACKET && bound.sll_halen == ETH_ALEN) {
    std::memcpy(address.bytes.data(), bound.sll_addr, ETH_ALEN);
    return true;
  }
  XdpShape shape;
  msghdr message{};
  if (!peek_shape(fd, shape, nullptr, message)) return false;
  address = shape.own;
  return true;
}

}  // namespace score::pm
