// In these tests a program without privileges holds a ring on the first of two interfaces, and
// tries everything that it can. Each interface has a listener on its other end.
#include "scored/privileged/rings/rings.hpp"

#include "pmlib/devices/ethernet_device.hpp"
#include "pmlib/wire/frame.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <optional>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace score::rings {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Mac = std::array<std::uint8_t, ETH_ALEN>;

constexpr std::uint64_t kAttempt = 0x1501, kOtherAttempt = 0x1602;
constexpr std::uint64_t kKey = 0x1122334455667788;
constexpr std::uint16_t kChannel = 3;
constexpr uid_t kNobody = 65534;
constexpr std::uint16_t kTypes[] = {0, ETH_P_ALL, ETH_P_ARP, pm::kEtherType};
constexpr int kDied = 112;

struct FrameOf {
  Mac from{};
  std::uint16_t type = pm::kEtherType;
  std::uint64_t attempt = kAttempt;
  std::uint64_t key = kKey;
  std::uint16_t channel = kChannel;
  std::uint32_t source = 0;
  std::uint32_t destination = 1;
  Mac to = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

  [[nodiscard]] Bytes bytes() const {
    pm::FrameHeader h;
    h.channel = channel;
    h.key = key;
    h.generation = ring_generation(attempt);
    h.source = source;
    h.destination = destination;
    Bytes out(ETH_HLEN + sizeof h);
    const std::uint16_t network_type = htons(type);
    std::memcpy(out.data(), to.data(), to.size());
    std::memcpy(out.data() + ETH_ALEN, from.data(), from.size());
    std::memcpy(out.data() + 2 * ETH_ALEN, &network_type, sizeof network_type);
    std::memcpy(out.data() + ETH_HLEN, &h, sizeof h);
    return out;
  }
};

sockaddr_ll address_on(int interface, std::uint16_t type) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(type);
  address.sll_ifindex = interface;
  return address;
}

Mac mac_of(int fd) {
  sockaddr_ll bound{};
  socklen_t size = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size);
  Mac mac;
  std::copy_n(bound.sll_addr, mac.size(), mac.begin());
  return mac;
}

// Receives all frames that arrive at an interface.
class Listener {
 public:
  explicit Listener(const char* interface)
      : interface_(static_cast<int>(if_nametoindex(interface))),
        fd_(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    const int on = 1;
    setsockopt(fd_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
    const auto address = address_on(interface_, ETH_P_ALL);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }

  ~Listener() { close(fd_); }

  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Returns the frames since the last call; those of the kernel's own IPv6 are left out.
  [[nodiscard]] std::vector<Bytes> heard() const {
    std::vector<Bytes> frames;
    Bytes room(2048);
    for (ssize_t got = 0; (got = recv(fd_, room.data(), room.size(), 0)) > 0;) {
      if (room[12] == 0x86 && room[13] == 0xdd) continue;
      frames.emplace_back(room.begin(), room.begin() + got);
    }
    return frames;
  }

  void say(const Bytes& frame) const {
    EXPECT_EQ(send(fd_, frame.data(), frame.size(), 0), static_cast<ssize_t>(frame.size()));
  }

 private:
  int interface_;
  int fd_;
};

int send_error(int fd, const Bytes& frame) {
  return send(fd, frame.data(), frame.size(), 0) >= 0 ? 0 : errno;
}

int promiscuous_error(int fd, int interface) {
  const packet_mreq all{
      .mr_ifindex = interface, .mr_type = PACKET_MR_PROMISC, .mr_alen = 0, .mr_address = {}};
  return setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) == 0 ? 0 : errno;
}

int bind_error(int fd, int interface, std::uint16_t type) {
  const auto to = address_on(interface, type);
  return bind(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
}

class RingsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can make network namespaces";
    original_ = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "no network namespaces here";
    if (std::system("ip link add ra type veth peer name rb && ip link set ra up && "
                    "ip link set rb up && ip link add rc type veth peer name rd && "
                    "ip link set rc up && ip link set rd up && ip link set lo up") != 0) {
      GTEST_SKIP() << "cannot make veth pairs";
    }
    beyond_.emplace("rb");
    elsewhere_.emplace("rd");
    loopback_.emplace("lo");
  }

  void TearDown() override {
    if (original_ < 0) return;
    ASSERT_EQ(setns(original_, CLONE_NEWNET), 0);
    close(original_);
  }

  int open_ring(std::uint64_t attempt, std::uint64_t key, std::uint32_t rank = 0) {
    RingFailure failure;
    const int fd = rings_.open(request_of(attempt, key, rank), failure);
    EXPECT_GE(fd, 0) << failure.step << ": " << std::strerror(failure.error);
    return fd;
  }

  static RingRequest request_of(std::uint64_t attempt, std::uint64_t key, std::uint32_t rank) {
    RingRequest request;
    request.attempt = attempt;
    request.key = key;
    request.rank = rank;
    request.channel = kChannel;
    return request;
  }

  // Runs the function in a separate process without privileges; it returns 0 for success.
  static int as_nobody(const std::function<int()>& exploit) {
    const pid_t child = fork();
    if (child == 0) {
      if (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0) {
        _exit(111);
      }
      _exit(exploit());
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : kDied;
  }

  void expect_nothing_heard() {
    EXPECT_TRUE(beyond_->heard().empty());
    EXPECT_TRUE(elsewhere_->heard().empty());
    EXPECT_TRUE(loopback_->heard().empty());
  }

  int original_ = -1;
  std::optional<Listener> beyond_, elsewhere_, loopback_;
  Rings rings_{"ra", SCORED_RING_GUARD};
};

TEST_F(RingsTest, CarriesFramesOfItsAttempt) {
  const int ring = open_ring(kAttempt, kKey);
  const FrameOf own{.from = mac_of(ring)};
  EXPECT_EQ(as_nobody([&] { return send_error(ring, own.bytes()); }), 0);
  const auto heard = beyond_->heard();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_EQ(heard[0], own.bytes());
  close(ring);
}

// Returns frames that are not of the attempt with kAttempt, kKey and kChannel.
std::vector<Bytes> foreign_frames(const Mac& own) {
  Mac forged = own;
  forged[5] ^= 1;
  std::vector<Bytes> frames;
  for (const FrameOf& frame : {FrameOf{.from = forged},
                               {.from = own, .type = ETH_P_ARP},
                               {.from = own, .type = ETH_P_IP},
                               {.from = own, .type = ETH_P_8021Q},
                               {.from = own, .attempt = kOtherAttempt},
                               {.from = own, .key = kKey + 1},
                               {.from = own, .channel = kChannel + 1},
                               {.from = own, .source = 1}}) {
    frames.push_back(frame.bytes());
  }
  Bytes& magic = frames.emplace_back(FrameOf{.from = own}.bytes());
  magic[ETH_HLEN] ^= 1;
  frames.emplace_back(magic.begin(), magic.begin() + ETH_HLEN + 4);
  return frames;
}

TEST_F(RingsTest, SendsNothingElse) {
  const int ring = open_ring(kAttempt, kKey);
  for (const Bytes& frame : foreign_frames(mac_of(ring))) {
    EXPECT_EQ(as_nobody([&] { return send_error(ring, frame); }), ENOBUFS);
  }
  expect_nothing_heard();
  close(ring);
}

TEST_F(RingsTest, SendsNoArpReply) {
  const int ring = open_ring(kAttempt, kKey);
  const Mac own = mac_of(ring);
  Bytes reply = FrameOf{.from = own, .type = ETH_P_ARP}.bytes();
  const arphdr header{htons(ARPHRD_ETHER), htons(ETH_P_IP), ETH_ALEN, 4, htons(ARPOP_REPLY)};
  std::memcpy(reply.data() + ETH_HLEN, &header, sizeof header);
  for (const std::uint16_t type : kTypes) {
    const int error = as_nobody([&] {
      for (int interface = 1; interface < 20; ++interface) {
        auto to = address_on(interface, type);
        to.sll_halen = ETH_ALEN;
        if (sendto(ring, reply.data(), reply.size(), 0, reinterpret_cast<sockaddr*>(&to),
                   sizeof to) >= 0) {
          return 1;
        }
      }
      return 0;
    });
    EXPECT_EQ(error, 0);
  }
  expect_nothing_heard();
  close(ring);
}

TEST_F(RingsTest, CannotBeBoundToAnythingElse) {
  const int ring = open_ring(kAttempt, kKey);
  for (int interface = 0; interface < 20; ++interface) {
    for (const std::uint16_t type : kTypes) {
      EXPECT_NE(
          as_nobody([&] { return bind_error(ring, interface, static_cast<std::uint16_t>(type)); }),
          0);
    }
  }
  close(ring);
}

TEST_F(RingsTest, KeepsItsOptions) {
  const int ring = open_ring(kAttempt, kKey);
  const int none = 0;
  EXPECT_EQ(as_nobody([&] { return promiscuous_error(ring, 2); }), EPERM);
  for (const int option : {SO_DETACH_FILTER, SO_MARK, SO_LOCK_FILTER}) {
    const int error = as_nobody(
        [&] { return setsockopt(ring, SOL_SOCKET, option, &none, sizeof none) == 0 ? 0 : errno; });
    EXPECT_EQ(error, EPERM) << option;
  }
  close(ring);
}

struct Counting final : pm::FrameSink {
  void on_frame(std::span<const std::byte>) override { ++count; }

  int count = 0;
};

int heard_by(pm::PacketDevice& device) {
  Counting got;
  for (int i = 0; i < 1'000; ++i) device.receive(got, 64);
  return got.count;
}

#if defined(__x86_64__)  // the only one whose 64-bit programs can make 32-bit calls

// Makes the call as a 32-bit program does, which the program on the cgroup does not see. Returns 0
// or a negative errno; the process dies if there are no such calls.
long promiscuous_by_32_bit_call(int fd, int interface) {
  void* low =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (low == MAP_FAILED) return -errno;
  const packet_mreq all{
      .mr_ifindex = interface, .mr_type = PACKET_MR_PROMISC, .mr_alen = 0, .mr_address = {}};
  std::memcpy(low, &all, sizeof all);
  constexpr long kSetsockopt32 = 366;
  long result = kSetsockopt32;
  asm volatile(
      "push %%rbp\n mov %[size], %%ebp\n"
      "push %%rdi\n mov %[size], %%edi\n"
      "int $0x80\n"
      "pop %%rdi\n pop %%rbp\n"
      : "+a"(result)
      : "b"(fd), "c"(SOL_PACKET), "d"(PACKET_ADD_MEMBERSHIP),
        "S"(low), [size] "r"(static_cast<int>(sizeof all))
      : "memory", "r8", "r9", "r10", "r11");
  munmap(low, 4096);
  return result;
}

TEST_F(RingsTest, HearsNothingElseAfterThirtyTwoBitCall) {
  int error = 0;
  const auto device = pm::EthernetDevice::attach(open_ring(kAttempt, kKey), error);
  ASSERT_TRUE(device);
  const int done = as_nobody([&] {
    for (int interface = 1; interface < 9; ++interface) {
      promiscuous_by_32_bit_call(device->poll_fd(), interface);
    }
    return 0;
  });
  if (done == kDied) GTEST_SKIP() << "this kernel has no 32-bit system calls";
  beyond_->say(FrameOf{.from = {2}, .type = ETH_P_ARP}.bytes());
  beyond_->say(FrameOf{.from = {2}, .type = ETH_P_ARP, .to = {2, 2}}.bytes());
  beyond_->say(FrameOf{.from = {2}, .attempt = kOtherAttempt, .destination = 0}.bytes());
  beyond_->say(FrameOf{.from = {2}, .destination = 0, .to = {2, 2}}.bytes());
  EXPECT_EQ(heard_by(*device), 0);
}

#endif

// This must hold even if the key is not in the frames.
TEST_F(RingsTest, HearsOnlyFramesOfItsAttempt) {
  int error = 0;
  const int fds[] = {open_ring(kAttempt, 0, 1), open_ring(kOtherAttempt, 0, 1)};
  const auto own = pm::EthernetDevice::attach(fds[0], error);
  const auto other = pm::EthernetDevice::attach(fds[1], error);
  ASSERT_TRUE(own && other);
  Mac to;
  std::memcpy(to.data(), own->own_address().bytes.data(), to.size());
  beyond_->say(FrameOf{.from = {2}, .key = 1, .to = to}.bytes());
  beyond_->say(FrameOf{.from = {2}, .attempt = kOtherAttempt, .key = 1, .to = to}.bytes());
  beyond_->say(FrameOf{.from = {2}, .attempt = 77, .key = 1, .to = to}.bytes());
  beyond_->say(FrameOf{.from = {2}, .type = ETH_P_IP, .key = 1, .to = to}.bytes());
  EXPECT_EQ(heard_by(*own), 1);
  EXPECT_EQ(heard_by(*other), 1);
}

TEST_F(RingsTest, AreRefusedWithoutTheInterface) {
  Rings rings("absent", SCORED_RING_GUARD);
  RingFailure failure;
  EXPECT_EQ(rings.open({}, failure), -1);
  EXPECT_EQ(failure.error, EPERM);
  EXPECT_STREQ(failure.step, "scored-ring-guard failed: see the log");
}

// The namespace and its interface are removed with the last ring.
TEST_F(RingsTest, OpensRingsAgainOnRecreatedInterface) {
  close(open_ring(kAttempt, kKey));
  ASSERT_EQ(std::system("ip link del ra && ip link add ra type veth peer name rb && "
                        "ip link set ra up && ip link set rb up"),
            0);
  beyond_.emplace("rb");
  const int ring = open_ring(kAttempt, kKey);
  const FrameOf own{.from = mac_of(ring)};
  EXPECT_EQ(send_error(ring, own.bytes()), 0);
  EXPECT_EQ(beyond_->heard().size(), 1u);
  close(ring);
}

}  // namespace
}  // namespace score::rings
