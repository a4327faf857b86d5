#include "pmlib/devices/udp_device.hpp"

#include "pmlib/wire/frame_filter.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <linux/errqueue.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace score::pm {

namespace {

constexpr std::size_t kMaxDatagram = 65507;  // IPv4 payload: 65535 - 20 - 8
constexpr std::size_t kReceiveBytes = 65536;
constexpr std::size_t kMaxErrors = 64;  // taken at once
constexpr int kSocketBytes = 4 << 20;   // requested; the kernel limits it to net.core.*mem_max

sockaddr_in to_sockaddr(const PeerAddress& address) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  std::memcpy(&in.sin_addr, address.bytes.data(), 4);
  std::memcpy(&in.sin_port, address.bytes.data() + 4, 2);
  return in;
}

// Returns the length of the frame at the start of `bytes` by its header, or all of `bytes` if there
// is none.
std::size_t frame_length(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(FrameHeader)) return bytes.size();
  std::uint16_t payload = 0;
  std::memcpy(&payload, bytes.data() + offsetof(FrameHeader, length), sizeof payload);
  return sizeof(FrameHeader) + payload;
}

// Joins memory that directly follows the previous piece to it, because each piece costs the kernel
// a step.
void add_pieces(const FrameOut& frame, std::span<iovec> pieces, std::size_t& count) {
  for (const auto& part : {frame.head, frame.body}) {
    if (part.empty()) continue;
    auto* start = const_cast<std::byte*>(part.data());
    if (count > 0) {
      iovec& last = pieces[count - 1];
      if (static_cast<std::byte*>(last.iov_base) + last.iov_len == start) {
        last.iov_len += part.size();
        continue;
      }
    }
    pieces[count++] = {start, part.size()};
  }
}

}  // namespace

bool UdpDevice::parse(const char* text, PeerAddress& address) {
  std::array<char, 64> host{};
  unsigned port = 0;
  char extra = 0;
  if (std::sscanf(text, "%63[0-9.]:%5u%c", host.data(), &port, &extra) != 2 || port > 65535) {
    return false;
  }
  in_addr ip{};
  if (inet_pton(AF_INET, host.data(), &ip) != 1) return false;
  const std::uint16_t network_port = htons(static_cast<std::uint16_t>(port));
  std::memcpy(address.bytes.data(), &ip, 4);
  std::memcpy(address.bytes.data() + 4, &network_port, 2);
  return true;
}

std::unique_ptr<UdpDevice> UdpDevice::open(const PeerAddress& own, std::size_t frame_bytes,
                                           int& error) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const sockaddr_in address = to_sockaddr(own);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    error = errno;
    if (fd >= 0) close(fd);
    return nullptr;
  }
  error = 0;
  return std::make_unique<UdpDevice>(fd, frame_bytes);
}

UdpDevice::UdpDevice(int fd, std::size_t frame_bytes)
    : fd_(fd), frame_bytes_(frame_bytes), buffer_(kReceiveBytes) {
  const int on = 1;
  setsockopt(fd_, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
  setsockopt(fd_, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
  setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &kSocketBytes, sizeof kSocketBytes);
  setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof kSocketBytes);
}

UdpDevice::~UdpDevice() {
  close(fd_);
}

int UdpDevice::drop_foreign(std::uint16_t channel, std::uint32_t rank, std::uint64_t key) {
  const FrameOwner owner{rank, key};
  return attach_filter(fd_, {kUdpHeader, channel, {&owner, 1}});
}

std::uint32_t UdpDevice::dropped() const {
  std::array<std::uint32_t, SK_MEMINFO_VARS> info{};
  socklen_t length = sizeof info;
  getsockopt(fd_, SOL_SOCKET, SO_MEMINFO, info.data(), &length);
  return info[SK_MEMINFO_DROPS];
}

void UdpDevice::drop_oversize() {
  const int probe = IP_PMTUDISC_PROBE;
  loses_too_large_ = setsockopt(fd_, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe) == 0;
}

void UdpDevice::ignore_refusals() {
  const int off = 0;
  setsockopt(fd_, IPPROTO_IP, IP_RECVERR, &off, sizeof off);
  reports_refusals_ = false;
}

PeerAddress UdpDevice::own_address() const {
  sockaddr_in in{};
  socklen_t length = sizeof in;
  PeerAddress address;
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&in), &length) != 0) return address;
  std::memcpy(address.bytes.data(), &in.sin_addr, 4);
  std::memcpy(address.bytes.data() + 4, &in.sin_port, 2);
  return address;
}

// --- sending -----------------------------------------------------------------------------------

std::size_t UdpDevice::send(const PeerAddress& to, std::span<const FrameOut> frames) {
  std::size_t sent = 0;
  while (sent < frames.size()) {
    const auto rest = frames.subspan(sent);
    const std::size_t run = can_join_ ? run_length(rest) : 1;
    std::size_t n = run > 1 ? send_joined(to, rest.first(run)) : send_separately(to, rest);
    if (n == 0 && run > 1 && !can_join_) continue;  // this call has just found out
    if (n == 0 && loses_too_large_ && errno == EMSGSIZE) n = 1;
    if (n == 0) {
      has_error_ |= errno == ECONNREFUSED;
      break;
    }
    sent += n;
  }
  return sent;
}

std::size_t UdpDevice::batch_frames() const {
  return std::clamp<std::size_t>(kMaxDatagram / frame_bytes_, 1, kMaxBatch);
}

// Returns how many frames from the first on may be joined: all of one size, the last may be
// smaller.
std::size_t UdpDevice::run_length(std::span<const FrameOut> frames) const {
  const std::size_t each = frames[0].size();
  const std::size_t limit = std::min(frames.size(), kMaxDatagram / each);
  std::size_t n = 1;
  while (n < limit && frames[n].size() == each) ++n;
  if (n < limit && frames[n].size() < each) ++n;
  return n;
}

std::size_t UdpDevice::send_joined(const PeerAddress& to, std::span<const FrameOut> frames) {
  std::array<iovec, 2 * kMaxBatch> pieces;
  std::size_t count = 0;
  for (const FrameOut& frame : frames) add_pieces(frame, pieces, count);
  sockaddr_in address = to_sockaddr(to);
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control{};
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* segment = CMSG_FIRSTHDR(&message);
  segment->cmsg_level = IPPROTO_UDP;
  segment->cmsg_type = UDP_SEGMENT;
  segment->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
  const auto each = static_cast<std::uint16_t>(frames[0].size());
  std::memcpy(CMSG_DATA(segment), &each, sizeof each);
  if (sendmsg(fd_, &message, MSG_DONTWAIT) >= 0) return frames.size();
  if (loses_too_large_ && (errno == EINVAL || errno == EMSGSIZE)) {
    return send_separately(to, frames.first(1));
  }
  // EIO means that the link cannot join; EINVAL and EMSGSIZE, that single frames exceed its MTU.
  if (errno == EIO || errno == EINVAL || errno == EMSGSIZE || errno == ENOPROTOOPT) {
    can_join_ = false;
  }
  return 0;
}

bool UdpDevice::send_one(const sockaddr_in& to, const FrameOut& frame) {
  if (frame.body.empty()) {
    return sendto(fd_, frame.head.data(), frame.head.size(), MSG_DONTWAIT,
                  reinterpret_cast<const sockaddr*>(&to), sizeof to) >= 0;
  }
  std::array<iovec, 2> pieces;
  std::size_t count = 0;
  add_pieces(frame, pieces, count);
  sockaddr_in address = to;
  msghdr message{};
  message.msg_name = &address;
  message.msg_namelen = sizeof address;
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  return sendmsg(fd_, &message, MSG_DONTWAIT) >= 0;
}

std::size_t UdpDevice::send_separately(const PeerAddress& to, std::span<const FrameOut> frames) {
  sockaddr_in address = to_sockaddr(to);
  // With joining, only the first frame is sent alone, because the rest may be a run again.
  const std::size_t n = can_join_ ? 1 : std::min(frames.size(), kMaxBatch);
  if (n == 1) return send_one(address, frames[0]) ? 1 : 0;
  std::array<iovec, 2 * kMaxBatch> pieces;
  std::array<mmsghdr, kMaxBatch> messages{};
  for (std::size_t i = 0; i < n; ++i) {
    msghdr& m = messages[i].msg_hdr;
    m.msg_name = &address;
    m.msg_namelen = sizeof address;
    m.msg_iov = &pieces[2 * i];
    add_pieces(frames[i], std::span(pieces).subspan(2 * i), m.msg_iovlen);
  }
  const int sent = sendmmsg(fd_, messages.data(), static_cast<unsigned>(n), MSG_DONTWAIT);
  return sent > 0 ? static_cast<std::size_t>(sent) : 0;
}

// --- receiving ---------------------------------------------------------------------------------

// Takes the answers of peers' nodes to frames for a closed port (ICMP port unreachable).
void UdpDevice::take_errors() {
  has_error_ = false;
  for (std::size_t i = 0; i < kMaxErrors; ++i) {
    sockaddr_in to{};
    alignas(cmsghdr) std::array<std::byte, 256> control{};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(fd_, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    const cmsghdr* c = CMSG_FIRSTHDR(&message);
    if (c == nullptr || c->cmsg_level != SOL_IP || c->cmsg_type != IP_RECVERR) continue;
    sock_extended_err error{};
    std::memcpy(&error, CMSG_DATA(c), sizeof error);
    if (error.ee_origin != SO_EE_ORIGIN_ICMP || error.ee_errno != ECONNREFUSED) continue;
    PeerAddress address;
    std::memcpy(address.bytes.data(), &to.sin_addr, 4);
    std::memcpy(address.bytes.data() + 4, &to.sin_port, 2);
    if (std::find(refused_.begin(), refused_.end(), address) == refused_.end()) {
      refused_.push_back(address);
    }
  }
}

bool UdpDevice::prepare_to_sleep() {
  take_errors();
  return refused_.empty();
}

// A joined datagram is split by the lengths in the frames' own headers: the kernel joins only
// datagrams of one sender, and a frame split wrongly fails its checksum. So no control message has
// to be read.
std::size_t UdpDevice::receive(FrameSink& sink, std::size_t limit) {
  std::size_t count = 0;
  if (has_error_) take_errors();
  for (; !refused_.empty(); refused_.pop_back()) sink.on_refused(refused_.back());
  while (count < limit) {
    const ssize_t n = recv(fd_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (n < 0) has_error_ |= errno == ECONNREFUSED;
    if (n <= 0) break;
    std::span<const std::byte> rest(buffer_.data(), static_cast<std::size_t>(n));
    const std::size_t before = count;
    while (!rest.empty()) {
      const std::size_t each = std::min(rest.size(), frame_length(rest));
      sink.on_frame(rest.first(each));
      rest = rest.subspan(each);
      ++count;
    }
    // A single frame is most likely one that the application waits for, so the device does not poll
    // again first.
    if (count == before + 1) break;
  }
  return count;
}

}  // namespace score::pm
