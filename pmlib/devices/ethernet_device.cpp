#include "pmlib/devices/ethernet_device.hpp"

#include "pmlib/wire/frame.hpp"
#include "pmlib/wire/frame_filter.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::pm {

namespace {

// The ring has at least 128 places, so that a window of one sender fits: a quarter of a megabyte
// for all of a node's peers, 1.2 MB if the interface's MTU is 9000.
constexpr std::size_t kSmallSpace = 2048;
constexpr std::uint32_t kFrames = 128;
constexpr std::size_t kSmallBlock = 8 * kSmallSpace;
constexpr std::size_t kLargeBlock = 65536;
constexpr std::size_t kKernelHeader = 128;  // includes kReserve and the Ethernet header
constexpr std::size_t kLargestMtu = 16'000;

// The kernel writes the frame behind its own header. With this reserve PM's header and a short
// payload share one cache line, so one line less moves from the processor that received them.
constexpr int kReserve = 48;

// No other packet reaches the ring, whatever the socket is bound to later. Broken frames are rare
// and a check for them would cost time for each message, so the filter passes them. The filter
// cannot be removed or changed.
int lock_filter(int fd, const EthernetPlace& place) {
  const FrameOwner owner{place.rank, place.key, place.generation};
  const FrameFilter filter{ETH_HLEN, place.channel, {&owner, 1}, true, kEtherType};
  if (const int error = attach_filter(fd, filter); error != 0) return error;
  const int on = 1;
  return setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &on, sizeof on) == 0 ? 0 : -errno;
}

// Returns the MTU, or 0 if it is not known. Both calls ask in the socket's network namespace, which
// may differ from that of this process.
std::size_t mtu_of(int fd, int interface) {
  ifreq request{};
  request.ifr_ifindex = interface;
  if (ioctl(fd, SIOCGIFNAME, &request) != 0 || ioctl(fd, SIOCGIFMTU, &request) != 0) return 0;
  return std::min(static_cast<std::size_t>(std::max(request.ifr_mtu, 0)), kLargestMtu);
}

std::size_t page_bytes() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

int configure(int fd, const EthernetPlace& place) {
  const auto index = static_cast<int>(if_nametoindex(place.interface));
  if (index == 0) return -errno;
  const int version = TPACKET_V2;
  const int on = 1;
  const RingShape shape = RingShape::of(mtu_of(fd, index), page_bytes());
  tpacket_req ring{};
  ring.tp_frame_size = static_cast<unsigned>(shape.space);
  ring.tp_frame_nr = shape.frames;
  ring.tp_block_size = static_cast<unsigned>(shape.block_bytes);
  ring.tp_block_nr = shape.frames / shape.in_block;
  if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
      setsockopt(fd, SOL_PACKET, PACKET_RESERVE, &kReserve, sizeof kReserve) != 0 ||
      setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) != 0) {
    return -errno;
  }
  setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
  setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
  if (const int error = lock_filter(fd, place); error != 0) return error;
  // The socket is bound last, so that nothing is received before the filter is in place.
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(kEtherType);
  address.sll_ifindex = index;
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return -errno;
  return 0;
}

std::array<std::byte, kEthernetHeader> ethernet_header(const PeerAddress& to,
                                                       const PeerAddress& from) {
  const std::uint16_t type = htons(kEtherType);
  std::array<std::byte, kEthernetHeader> header;
  std::memcpy(header.data(), to.bytes.data(), ETH_ALEN);
  std::memcpy(header.data() + ETH_ALEN, from.bytes.data(), ETH_ALEN);
  std::memcpy(header.data() + 2 * ETH_ALEN, &type, sizeof type);
  return header;
}

// Writes the frame to `at`, behind the Ethernet header.
void put_frame(const FrameOut& frame, std::byte* at) {
  std::memcpy(at, frame.head.data(), frame.head.size());
  if (frame.body.empty()) return;
  std::memcpy(at + frame.head.size(), frame.body.data(), frame.body.size());
}

// Passes PM's frame in `arrived` to `sink`, if there is one. Ethernet pads short frames to 60
// bytes, so the length is taken from PM's header.
void take_frame(std::span<const std::byte> arrived, FrameSink& sink) {
  if (arrived.size() < kEthernetHeader + sizeof(FrameHeader)) return;
  const auto frame = arrived.subspan(kEthernetHeader);
  std::uint16_t payload = 0;
  std::memcpy(&payload, frame.data() + offsetof(FrameHeader, length), sizeof payload);
  sink.on_frame(frame.first(std::min(sizeof(FrameHeader) + payload, frame.size())));
}

}  // namespace

RingShape RingShape::of(std::size_t mtu, std::size_t page_bytes) {
  const bool is_small = mtu <= kSmallSpace - kKernelHeader;
  const std::size_t space = is_small ? kSmallSpace : (kKernelHeader + mtu + 63) / 64 * 64;
  const std::size_t block = std::max(is_small ? kSmallBlock : kLargeBlock, page_bytes);
  const auto in_block = static_cast<std::uint32_t>(block / space);
  return {space, block, in_block, (kFrames + in_block - 1) / in_block * in_block};
}

int open_ethernet_socket(const EthernetPlace& place) {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  const int error = configure(fd, place);
  if (error == 0) return fd;
  close(fd);
  return error;
}

bool EthernetDevice::parse(const char* text, PeerAddress& address) {
  std::array<unsigned, 6> part{};
  char extra = 0;
  if (std::sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &part[0], &part[1], &part[2], &part[3],
                  &part[4], &part[5], &extra) != 6) {
    return false;
  }
  for (std::size_t i = 0; i < part.size(); ++i) {
    address.bytes[i] = static_cast<std::uint8_t>(part[i]);
  }
  return true;
}

std::unique_ptr<EthernetDevice> EthernetDevice::attach(int fd, int& error) {
  std::unique_ptr<EthernetDevice> device(new EthernetDevice(fd));
  error = device->map();
  if (error != 0) device.reset();
  return device;
}

int EthernetDevice::map() {
  sockaddr_ll address{};
  socklen_t length = sizeof address;
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0) return errno;
  if (address.sll_family != AF_PACKET || address.sll_halen != ETH_ALEN) return EINVAL;
  interface_ = address.sll_ifindex;
  std::memcpy(own_.bytes.data(), address.sll_addr, ETH_ALEN);

  const std::size_t mtu = mtu_of(fd_, interface_);
  if (mtu == 0) return ENODEV;
  shape_ = RingShape::of(mtu, page_bytes());
  frame_bytes_ = std::min(mtu, shape_.space - kKernelHeader);
  void* memory = mmap(nullptr, shape_.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (memory == MAP_FAILED) return errno;
  ring_ = at_ = static_cast<std::byte*>(memory);
  std::ranges::copy(ethernet_header({}, own_), short_.begin());
  return 0;
}

EthernetDevice::~EthernetDevice() {
  if (ring_ != nullptr) munmap(ring_, shape_.bytes());
  close(fd_);
}

// A short frame is assembled here and sent by the cheapest call.
bool EthernetDevice::send_short(const PeerAddress& to, const FrameOut& frame) {
  std::memcpy(short_.data(), to.bytes.data(), ETH_ALEN);  // the rest of the header is already there
  put_frame(frame, short_.data() + kEthernetHeader);
  return ::send(fd_, short_.data(), kEthernetHeader + frame.size(), MSG_DONTWAIT) >= 0;
}

std::size_t EthernetDevice::send(const PeerAddress& to, std::span<const FrameOut> frames) {
  const bool is_short = frames.size() == 1 && frames[0].size() <= kShortFrame;
  if (!is_short) [[unlikely]]
    return send_many(to, frames);
  return send_short(to, frames[0]) ? 1 : 0;
}

std::size_t EthernetDevice::send_many(const PeerAddress& to, std::span<const FrameOut> frames) {
  auto header = ethernet_header(to, own_);
  std::array<iovec, 3 * kMaxBatch> pieces;
  std::array<mmsghdr, kMaxBatch> messages{};
  std::size_t count = 0;
  const std::size_t n = std::min(frames.size(), kMaxBatch);
  for (std::size_t i = 0; i < n; ++i) {
    msghdr& m = messages[i].msg_hdr;
    m.msg_iov = &pieces[count];
    const std::size_t before = count;
    pieces[count++] = {header.data(), header.size()};
    for (const auto& part : {frames[i].head, frames[i].body}) {
      if (!part.empty()) pieces[count++] = {const_cast<std::byte*>(part.data()), part.size()};
    }
    m.msg_iovlen = count - before;
  }
  const int sent = sendmmsg(fd_, messages.data(), static_cast<unsigned>(n), MSG_DONTWAIT);
  if (sent < 0 && errno == EMSGSIZE) return 1;  // the interface's MTU has shrunk: the frame is lost
  return sent > 0 ? static_cast<std::size_t>(sent) : 0;
}

std::atomic_ref<std::uint32_t> EthernetDevice::status_of(std::uint32_t place) const {
  auto* frame = reinterpret_cast<tpacket2_hdr*>(ring_ + shape_.offset(place % shape_.frames));
  return std::atomic_ref<std::uint32_t>(frame->tp_status);
}

bool EthernetDevice::is_full(std::uint32_t place) const {
  return (status_of(place).load(std::memory_order_acquire) & TP_STATUS_USER) != 0;
}

// The kernel does not report its position in a ring that an earlier process has read, but the first
// frame shows it. A ring without a free place does not show it, so its frames are lost.
bool EthernetDevice::find_start() {
  for (std::uint32_t i = 0; i < shape_.frames && !has_start_; ++i) {
    has_start_ = is_full(i) && !is_full(i + shape_.frames - 1);
    if (has_start_) next_ = i;
  }
  at_ = ring_ + shape_.offset(next_);
  for (std::uint32_t i = 0; i < shape_.frames && !has_start_ && is_full(i); ++i) {
    status_of(i).store(TP_STATUS_KERNEL, std::memory_order_release);
  }
  return has_start_;
}

std::size_t EthernetDevice::receive(FrameSink& sink, std::size_t limit) {
  if (!has_start_ && !find_start()) [[unlikely]]
    return 0;
  std::size_t count = 0;
  for (; count < limit; ++count) {
    auto* frame = reinterpret_cast<tpacket2_hdr*>(at_);
    std::atomic_ref<std::uint32_t> status(frame->tp_status);
    if ((status.load(std::memory_order_acquire) & TP_STATUS_USER) == 0) break;
    const std::uint32_t start = frame->tp_mac;
    const std::uint32_t length = frame->tp_snaplen;
    if (start + length <= shape_.space) {
      take_frame({reinterpret_cast<const std::byte*>(frame) + start, length}, sink);
    }
    status.store(TP_STATUS_KERNEL, std::memory_order_release);
    if (++next_ == shape_.frames) next_ = 0;
    at_ = ring_ + shape_.offset(next_);
    // A short frame is most likely one that the application waits for. The next place of the ring
    // was written by a different processor, so reading it takes a while.
    if (length < kEthernetHeader + kShortFrame) return count + 1;
  }
  return count;
}

}  // namespace score::pm
