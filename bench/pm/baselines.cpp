#include "bench/pm/baselines.hpp"

#include "pmlib/devices/ethernet_device.hpp"
#include "pmlib/wire/frame.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace score::bench {

namespace {

constexpr unsigned kWarmUp = 200;
// Chosen before the two sides are forked, so both know it. Benchmarks that run at the same time on
// this machine have different ports. All are below those that the kernel assigns.
const auto kPort = static_cast<std::uint16_t>(10'000 + getpid() % 1000 * 20);
constexpr std::size_t kSegment = 1472;  // UDP payload that fits an MTU of 1500

void require(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

// Runs `round` for each round trip; side 0 measures.
template <class Round>
void timed_rounds(int side, Shared& shared, unsigned count, Round round) {
  meet(shared, 1);
  for (unsigned i = 0; i < kWarmUp; ++i) round();
  const double start = now_seconds();
  for (unsigned i = 0; i < count; ++i) round();
  if (side == 0) shared.seconds = now_seconds() - start;
}

sockaddr_in address_of(const std::string& ip, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  require(inet_pton(AF_INET, ip.c_str(), &address.sin_addr) == 1, "cannot parse the address");
  return address;
}

template <class Address>
const sockaddr* generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) { require(fd >= 0, "cannot make a socket"); }

  ~Socket() { close(fd_); }

  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  operator int() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

// --- shared memory -----------------------------------------------------------------------------

void flag_ping_pong(int side, Shared& shared, Amount amount) {
  std::atomic<std::uint64_t>& mine = shared.flag[side][0];
  std::atomic<std::uint64_t>& theirs = shared.flag[1 - side][0];
  std::vector<std::uint8_t> local(std::max<std::size_t>(amount.size, 8));
  const bool has_body = amount.size > 8;
  std::uint64_t turn = 0;
  auto put = [&] {
    if (has_body) std::memcpy(shared.area[side], local.data(), amount.size);
    theirs.store(turn, std::memory_order_release);
  };
  auto take = [&] {
    while (mine.load(std::memory_order_acquire) != turn) {
    }
    if (has_body) std::memcpy(local.data(), shared.area[1 - side], amount.size);
  };
  timed_rounds(side, shared, amount.count, [&] {
    ++turn;
    if (side == 0) {
      put();
      take();
    } else {
      take();
      put();
    }
  });
}

void cross_memory_stream(int side, Shared& shared, Amount amount) {
  std::vector<std::uint8_t> memory(amount.size, static_cast<std::uint8_t>(side));
  shared.address[side] = reinterpret_cast<std::uint64_t>(memory.data());
  meet(shared, 1);
  if (side == 0) {
    const iovec local{memory.data(), memory.size()};
    const iovec remote{reinterpret_cast<void*>(shared.address[1]), memory.size()};
    double start = 0;
    for (unsigned i = 0; i < amount.count + 4; ++i) {
      if (i == 4) start = now_seconds();
      require(process_vm_writev(shared.pid[1], &local, 1, &remote, 1, 0) ==
                  static_cast<ssize_t>(memory.size()),
              "process_vm_writev");
    }
    shared.seconds = now_seconds() - start;
    shared.amount = amount.size * amount.count;
  }
  meet(shared, 2);
}

// --- packet ring -------------------------------------------------------------------------------

namespace {

constexpr std::size_t kFrameSpace = 2048;
constexpr unsigned kFrames = 128;  // in one block: a multiple of every size of a page
constexpr std::size_t kRingPayload = 1472;
constexpr std::uint16_t kRawType = 0x88b6;  // the second experimental EtherType: not PM's

class PacketRing {
 public:
  explicit PacketRing(const std::string& peer_mac)
      : fd_(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0)) {
    const int version = TPACKET_V2;
    const int on = 1;
    tpacket_req ring{kFrames * kFrameSpace, 1, kFrameSpace, kFrames};
    require(setsockopt(fd_, SOL_PACKET, PACKET_VERSION, &version, sizeof version) == 0,
            "cannot set PACKET_VERSION");
    require(setsockopt(fd_, SOL_PACKET, PACKET_RX_RING, &ring, sizeof ring) == 0,
            "cannot set PACKET_RX_RING");
    setsockopt(fd_, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on);
    setsockopt(fd_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(kRawType);
    address.sll_ifindex = static_cast<int>(if_nametoindex(TwoEnds::kInterface));
    require(bind(fd_, generic(address), sizeof address) == 0, "cannot bind");
    socklen_t length = sizeof address;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length);
    void* memory = mmap(nullptr, kFrames * kFrameSpace, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    require(memory != MAP_FAILED, "cannot map the ring");
    ring_ = static_cast<std::uint8_t*>(memory);
    pm::PeerAddress peer;
    require(pm::EthernetDevice::parse(peer_mac.c_str(), peer), "cannot parse the MAC address");
    std::memcpy(frame_.data(), peer.bytes.data(), 6);
    std::memcpy(frame_.data() + 6, address.sll_addr, 6);
    const std::uint16_t type = htons(kRawType);
    std::memcpy(frame_.data() + 12, &type, 2);
  }

  ~PacketRing() { munmap(ring_, kFrames * kFrameSpace); }

  // In both directions the message's bytes are copied between the frame and memory of the user.
  void send(std::size_t size) {
    std::memcpy(frame_.data() + 14, message_.data(), size);
    const std::size_t length = std::max<std::size_t>(60, 14 + size);
    while (::send(fd_, frame_.data(), length, 0) < 0) {
    }
  }

  bool try_take() {
    auto* header = reinterpret_cast<tpacket2_hdr*>(ring_ + next_ * kFrameSpace);
    std::atomic_ref<std::uint32_t> status(header->tp_status);
    if ((status.load(std::memory_order_acquire) & TP_STATUS_USER) == 0) return false;
    const std::size_t size = std::min<std::size_t>(header->tp_snaplen - 14, message_.size());
    std::memcpy(message_.data(), reinterpret_cast<std::uint8_t*>(header) + header->tp_mac + 14,
                size);
    status.store(TP_STATUS_KERNEL, std::memory_order_release);
    next_ = (next_ + 1) % kFrames;
    return true;
  }

 private:
  Socket fd_;
  std::uint8_t* ring_ = nullptr;
  unsigned next_ = 0;
  std::array<std::uint8_t, 1514> frame_{};
  std::array<std::uint8_t, 1500> message_{};
};

}  // namespace

namespace {

// Sends and receives messages of any size over a ring that never overruns: each end publishes in
// shared memory how many frames it has taken.
class RingFlow {
 public:
  RingFlow(int side, Shared& shared, const std::string& peer_mac)
      : ring_(peer_mac), taken_(shared.flag[side][0]), peer_taken_(shared.flag[1 - side][0]) {}

  void send(std::size_t size) {
    for (std::size_t at = 0; at < size; at += kRingPayload) {
      while (sent_ - peer_taken_.load(std::memory_order_acquire) >= kFrames / 2) {
      }
      ring_.send(std::min(kRingPayload, size - at));
      ++sent_;
    }
  }

  void take(std::size_t size) {
    for (std::size_t at = 0; at < size; at += kRingPayload) {
      while (!ring_.try_take()) {
      }
      taken_.store(++received_, std::memory_order_release);
    }
  }

 private:
  PacketRing ring_;
  std::atomic<std::uint64_t>& taken_;
  std::atomic<std::uint64_t>& peer_taken_;
  std::uint64_t sent_ = 0, received_ = 0;
};

}  // namespace

void packet_ring_ping_pong(int side, Shared& shared, Amount amount, const std::string& peer_mac) {
  if (amount.size <= kRingPayload) {  // the answer shows that the frame was taken
    PacketRing ring(peer_mac);
    return timed_rounds(side, shared, amount.count, [&] {
      if (side == 0) ring.send(amount.size);
      while (!ring.try_take()) {
      }
      if (side == 1) ring.send(amount.size);
    });
  }
  RingFlow flow(side, shared, peer_mac);
  timed_rounds(side, shared, amount.count, [&] {
    if (side == 0) flow.send(amount.size);
    flow.take(amount.size);
    if (side == 1) flow.send(amount.size);
  });
}

void packet_ring_stream(int side, Shared& shared, Amount amount, const std::string& peer_mac) {
  RingFlow flow(side, shared, peer_mac);
  meet(shared, 1);
  const double start = now_seconds();
  for (std::uint64_t i = 0; i < amount.count; ++i) {
    if (side == 0) {
      flow.send(amount.size);
    } else {
      flow.take(amount.size);
    }
  }
  if (side == 1) {
    shared.seconds = now_seconds() - start;
    shared.amount = amount.size * amount.count;
  }
}

// --- UDP ---------------------------------------------------------------------------------------

namespace {

constexpr std::size_t kBurst = 44 * kSegment;

// Sends bursts that the kernel cuts into datagrams, and receives joined datagrams.
class UdpFlow {
 public:
  UdpFlow(int side, const std::string& own, const std::string& peer)
      : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)),
        peer_(address_of(peer, static_cast<std::uint16_t>(kPort + 1 - side))) {
    const sockaddr_in mine = address_of(own, static_cast<std::uint16_t>(kPort + side));
    const int on = 1;
    const int room = 4 << 20;
    setsockopt(fd_, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
    setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    require(bind(fd_, generic(mine), sizeof mine) == 0, "cannot bind");
    message_.msg_name = &peer_;
    message_.msg_namelen = sizeof peer_;
    message_.msg_iov = &piece_;
    message_.msg_iovlen = 1;
    message_.msg_control = control_.data();
    message_.msg_controllen = control_.size();
    cmsghdr* segment = CMSG_FIRSTHDR(&message_);
    segment->cmsg_level = IPPROTO_UDP;
    segment->cmsg_type = UDP_SEGMENT;
    segment->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const std::uint16_t each = kSegment;
    std::memcpy(CMSG_DATA(segment), &each, sizeof each);
  }

  UdpFlow(const UdpFlow&) = delete;
  UdpFlow& operator=(const UdpFlow&) = delete;

  bool send(void* bytes, std::size_t size) {
    piece_ = {bytes, size};
    message_.msg_controllen = size > kSegment ? control_.size() : 0;
    return sendmsg(fd_, &message_, 0) > 0;
  }

  std::size_t take(void* bytes, std::size_t room) {
    const ssize_t n = recv(fd_, bytes, room, 0);
    return n > 0 ? static_cast<std::size_t>(n) : 0;
  }

 private:
  Socket fd_;
  sockaddr_in peer_;
  iovec piece_{};
  msghdr message_{};
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control_{};
};

// Exchanges messages longer than a datagram, in bursts that the other end's socket can hold.
void udp_ping_pong_in_bursts(int side, Shared& shared, Amount amount, UdpFlow& flow) {
  constexpr std::uint64_t kAhead = 2 * kBurst;
  std::vector<std::uint8_t> bytes(amount.size + 65536);
  std::atomic<std::uint64_t>& taken = shared.flag[side][0];
  std::atomic<std::uint64_t>& peer_taken = shared.flag[1 - side][0];
  std::uint64_t sent = 0;
  const auto put = [&] {
    for (std::size_t at = 0; at < amount.size;) {
      const std::size_t burst = std::min(kBurst, amount.size - at);
      if (sent + burst > peer_taken.load(std::memory_order_acquire) + kAhead) continue;
      if (!flow.send(&bytes[at], burst)) continue;
      at += burst;
      sent += burst;
    }
  };
  const auto take = [&] {
    for (std::size_t at = 0; at < amount.size;) {
      const std::size_t n = flow.take(&bytes[at], 65536);
      at += n;
      if (n > 0) taken.fetch_add(n, std::memory_order_release);
    }
  };
  timed_rounds(side, shared, amount.count, [&] {
    if (side == 0) put();
    take();
    if (side == 1) put();
  });
}

}  // namespace

void udp_ping_pong(int side, Shared& shared, Amount amount, const std::string own,
                   const std::string peer) {
  if (amount.size > kSegment) {
    UdpFlow flow(side, own, peer);
    return udp_ping_pong_in_bursts(side, shared, amount, flow);
  }
  const Socket fd(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
  const sockaddr_in mine = address_of(own, static_cast<std::uint16_t>(kPort + side));
  const sockaddr_in other = address_of(peer, static_cast<std::uint16_t>(kPort + 1 - side));
  require(bind(fd, generic(mine), sizeof mine) == 0, "cannot bind");
  std::vector<std::uint8_t> bytes(amount.size);
  const auto put = [&] { sendto(fd, bytes.data(), bytes.size(), 0, generic(other), sizeof other); };
  const auto take = [&] {
    while (recv(fd, bytes.data(), bytes.size(), 0) < 0) {
    }
  };
  timed_rounds(side, shared, amount.count, [&] {
    if (side == 0) put();
    take();
    if (side == 1) put();
  });
}

namespace {

// The sender is never further ahead than the receiver's socket holds, or most datagrams would be
// lost. A lost datagram would stop the stream, so after a while without progress the missing bytes
// count as lost.
void udp_stream_out(UdpFlow& flow, std::size_t burst, Amount amount,
                    const std::atomic<std::uint64_t>& received) {
  constexpr std::uint64_t kAhead = 262'144;
  // Both ends copy through a buffer of a message's size, as a program that uses the bytes would.
  std::vector<std::uint8_t> bytes(std::max(amount.size, burst) + burst);
  const std::uint64_t total = std::uint64_t{amount.size} * amount.count;
  std::uint64_t sent = 0, lost = 0;
  std::size_t at = 0;
  unsigned idle = 0;
  for (std::uint64_t seen = 0, last = 0; (seen = received.load()) < total; last = seen) {
    idle = seen == last ? idle + 1 : 0;
    if (idle > 100'000) lost = sent - seen;
    if (sent - lost > seen + kAhead || !flow.send(&bytes[at], burst)) continue;
    sent += burst;
    at = at + burst < amount.size ? at + burst : 0;
    idle = 0;
  }
}

}  // namespace

void udp_stream(int side, Shared& shared, Amount amount, const std::string own,
                const std::string peer) {
  UdpFlow flow(side, own, peer);
  std::atomic<std::uint64_t>& received = shared.flag[0][0];
  meet(shared, 1);
  if (side == 0) {
    const std::size_t burst = amount.size <= kSegment ? amount.size : kBurst;
    return udp_stream_out(flow, burst, amount, received);
  }
  std::vector<std::uint8_t> bytes(amount.size + 65536);
  std::uint64_t got = 0;
  std::size_t at = 0;
  const double start = now_seconds();
  for (const std::uint64_t total = std::uint64_t{amount.size} * amount.count; got < total;) {
    const std::size_t n = flow.take(&bytes[at], 65536);
    if (n == 0) continue;
    at = at + n < amount.size ? at + n : 0;
    got += n;
    received.store(got, std::memory_order_relaxed);
  }
  shared.seconds = now_seconds() - start;
  shared.amount = got;
}

// --- TCP ---------------------------------------------------------------------------------------

namespace {

int connect_tcp(int side, Shared& shared, const std::string& server) {
  const Socket listener(socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = address_of(server, kPort + 10);
  const int on = 1;
  int fd = -1;
  if (side == 1) {
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    require(bind(listener, generic(address), sizeof address) == 0, "cannot bind");
    require(listen(listener, 1) == 0, "cannot listen");
    meet(shared, 1);
    fd = accept(listener, nullptr, nullptr);
  } else {
    meet(shared, 1);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    require(connect(fd, generic(address), sizeof address) == 0, "cannot connect");
  }
  require(fd >= 0, "cannot open a TCP connection");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

void tcp_move(int fd, std::vector<std::uint8_t>& bytes, bool send_it) {
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t n = send_it ? send(fd, &bytes[at], bytes.size() - at, MSG_DONTWAIT | MSG_NOSIGNAL)
                              : recv(fd, &bytes[at], bytes.size() - at, MSG_DONTWAIT);
    if (n > 0) at += static_cast<std::size_t>(n);
    if (n == 0 && !send_it) throw std::runtime_error("the TCP connection closed early");
  }
}

}  // namespace

void tcp_ping_pong(int side, Shared& shared, Amount amount, const std::string server) {
  const Socket fd(connect_tcp(side, shared, server));
  std::vector<std::uint8_t> bytes(amount.size);
  double start = 0;
  for (unsigned i = 0; i < kWarmUp + amount.count; ++i) {
    if (i == kWarmUp) start = now_seconds();
    if (side == 0) tcp_move(fd, bytes, true);
    tcp_move(fd, bytes, false);
    if (side == 1) tcp_move(fd, bytes, true);
    if (side == 0) shared.seconds = now_seconds() - start;
  }
}

void tcp_stream(int side, Shared& shared, Amount amount, const std::string server) {
  const Socket fd(connect_tcp(side, shared, server));
  std::vector<std::uint8_t> bytes(amount.size);
  const double start = now_seconds();
  for (unsigned i = 0; i < amount.count; ++i) tcp_move(fd, bytes, side == 0);
  if (side == 1) {
    shared.seconds = now_seconds() - start;
    shared.amount = amount.size * amount.count;
  }
}

}  // namespace score::bench
