// These tests check the packet devices: what they carry, what they refuse and what they leave
// alone. Ethernet runs over a veth pair between two network namespaces, which needs root.
#include "pmlib/devices/ethernet_device.hpp"
#include "pmlib/devices/ofi_device.hpp"
#include "pmlib/devices/udp_device.hpp"
#include "pmlib/network/network.hpp"
#include "pmlib/wire/frame_filter.hpp"
#include "tests/support/pmlib/test_job.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <random>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

namespace score::pm {
namespace {

constexpr std::size_t kFrameBytes = 48 + 1424;

struct Collector final : FrameSink {
  void on_frame(std::span<const std::byte> frame) override {
    frames.emplace_back(frame.begin(), frame.end());
  }

  std::vector<std::vector<std::byte>> frames;
};

std::vector<std::byte> frame_of(std::uint16_t payload, std::uint32_t number,
                                std::uint16_t channel = 3) {
  FrameHeader h;
  h.kind = FrameKind::Message;
  h.length = payload;
  h.number = number;
  h.channel = channel;
  h.key = 99;
  std::vector<std::byte> bytes(sizeof h + payload, static_cast<std::byte>(number));
  std::memcpy(bytes.data(), &h, sizeof h);
  return bytes;
}

std::uint32_t number_of(const std::vector<std::byte>& frame) {
  FrameHeader h;
  std::memcpy(&h, frame.data(), sizeof h);
  return h.number;
}

std::unique_ptr<UdpDevice> udp() {
  int error = 0;
  auto device = UdpDevice::open({{127, 0, 0, 1, 0, 0}}, kFrameBytes, error);
  EXPECT_TRUE(device) << error;
  return device;
}

// Sends, then receives until `count` frames have arrived.
void carry(PacketDevice& from, const PeerAddress& to, PacketDevice& into, Collector& got,
           const std::vector<std::vector<std::byte>>& frames) {
  std::vector<FrameOut> out;
  for (const auto& f : frames) {
    out.push_back(
        {std::span(f).first(sizeof(FrameHeader)), std::span(f).subspan(sizeof(FrameHeader))});
  }
  std::size_t sent = 0;
  for (int i = 0; i < 2'000'000 && got.frames.size() < frames.size(); ++i) {
    if (sent < out.size()) sent += from.send(to, std::span(out).subspan(sent));
    into.receive(got, 64);
    Collector nothing;
    from.receive(nothing, 64);
  }
  ASSERT_EQ(got.frames.size(), frames.size());
}

TEST(UdpDevice, CarriesBurstsOfMixedSizesInOrder) {
  const auto a = udp();
  const auto b = udp();
  std::vector<std::vector<std::byte>> frames;
  std::mt19937 random(1);
  for (std::uint32_t i = 0; i < 60; ++i) {
    frames.push_back(frame_of(static_cast<std::uint16_t>(i % 3 != 0 ? 1424 : random() % 1425), i));
  }
  Collector got;
  carry(*a, b->own_address(), *b, got, frames);
  for (std::size_t i = 0; i < got.frames.size(); ++i) EXPECT_EQ(got.frames[i], frames[i]) << i;
}

TEST(UdpDevice, ForeignDatagramsArePassedOnWhole) {
  const auto a = udp();
  const int stranger = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  std::memcpy(&to.sin_addr, a->own_address().bytes.data(), 4);
  std::memcpy(&to.sin_port, a->own_address().bytes.data() + 4, 2);
  std::mt19937 random(2);
  const FrameIdentity me{.key = 1, .generation = 1, .rank = 0, .size = 2};
  for (int i = 0; i < 500; ++i) {
    std::vector<std::byte> bytes(random() % 3000);
    for (auto& b : bytes) b = static_cast<std::byte>(random());
    sendto(stranger, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&to), sizeof to);
    Collector got;
    a->receive(got, 64);
    std::size_t sum = 0;
    for (const auto& f : got.frames) {
      FrameHeader h;
      EXPECT_NE(check_frame(f, me, h), FrameVerdict::Good);
      sum += f.size();
    }
    EXPECT_TRUE(sum == 0 || sum == bytes.size());
  }
  close(stranger);
}

// Returns a frame that passes the filter; KernelDropsFramesForOtherRanks modifies it.
std::vector<std::byte> fitting_frame(std::uint32_t number) {
  FrameHeader h;
  h.number = number;
  h.channel = 3;
  h.key = 0x1122334455667788;
  h.destination = 0x01020304;
  h.length = 300;
  std::vector<std::byte> bytes(sizeof h + h.length);
  std::memcpy(bytes.data(), &h, sizeof h);
  return bytes;
}

TEST(UdpDevice, KernelDropsFramesForOtherRanks) {
  const auto from = udp();
  const auto to = udp();
  ASSERT_EQ(to->drop_foreign(3, 0x01020304, 0x1122334455667788), 0);
  // The test modifies one byte of each checked field, and then the length.
  for (const std::size_t at : {0u, 1u, 4u, 5u, 8u, 11u, 12u, 15u, 24u, 27u}) {
    auto bytes = fitting_frame(0);
    bytes[at] ^= std::byte{0x10};
    const FrameOut frame{bytes, {}};
    ASSERT_EQ(from->send(to->own_address(), {&frame, 1}), 1u);
  }
  for (const std::size_t length : {1u, 9u, 47u, 48u, 347u}) {
    const auto bytes = fitting_frame(0);
    const FrameOut frame{std::span(bytes).first(length), {}};
    ASSERT_EQ(from->send(to->own_address(), {&frame, 1}), 1u);
  }
  EXPECT_EQ(to->dropped(), 15u);
  Collector got;
  carry(*from, to->own_address(), *to, got, {fitting_frame(1), fitting_frame(2), fitting_frame(3)});
  for (std::uint32_t i = 0; i < got.frames.size(); ++i) EXPECT_EQ(number_of(got.frames[i]), i + 1);
  EXPECT_EQ(to->dropped(), 15u);
}

TEST(UdpDevice, RefusalDoesNotStopNextDatagram) {
  int error = 0;
  auto to = UdpDevice::open({{127, 0, 0, 1, 0, 0}}, kFrameBytes, error);
  auto gone = UdpDevice::open({{127, 0, 0, 1, 0, 0}}, kFrameBytes, error);
  auto from = UdpDevice::open({{127, 0, 0, 1, 0, 0}}, kFrameBytes, error);
  ASSERT_TRUE(to && gone && from);
  from->ignore_refusals();
  const PeerAddress nobody = gone->own_address();
  gone.reset();
  const auto frame = frame_of(10, 1);
  const FrameOut out{frame, {}};
  EXPECT_EQ(from->send(nobody, {&out, 1}), 1u);
  EXPECT_EQ(from->send(to->own_address(), {&out, 1}), 1u);
  EXPECT_FALSE(from->reports_refusals());
  EXPECT_TRUE(from->prepare_to_sleep());
  Collector got;
  EXPECT_EQ(to->receive(got, 10), 1u);
}

TEST(FrameFilter, NumberOfOwnersIsLimited) {
  const auto to = udp();
  const std::vector<FrameOwner> owners(kMostFrameOwners + 1, {1, 2});
  EXPECT_EQ(attach_filter(to->poll_fd(), {kUdpHeader, 3, owners}), -EINVAL);
  EXPECT_EQ(attach_filter(to->poll_fd(), {kUdpHeader, 3, std::span(owners).first(64)}), 0);
  EXPECT_EQ(detach_filter(to->poll_fd()), 0);
  EXPECT_EQ(detach_filter(to->poll_fd()), 0);
}

TEST(UdpDevice, TaggedFramesPassWithAnyKey) {
  const auto from = udp();
  const auto to = udp();
  ASSERT_EQ(to->drop_foreign(3, 0x01020304, 0), 0);
  Collector got;
  carry(*from, to->own_address(), *to, got, {fitting_frame(1)});
  EXPECT_EQ(to->dropped(), 0u);
}

TEST(UdpDevice, ReadsAddresses) {
  PeerAddress address;
  EXPECT_TRUE(UdpDevice::parse("10.1.2.3:258", address));
  EXPECT_EQ(address, (PeerAddress{{10, 1, 2, 3, 1, 2}}));
  for (const char* bad : {"", "10.1.2.3", "10.1.2.3:70000", "10.1.2:5", "10.1.2.3:5x", "a:1"}) {
    EXPECT_FALSE(UdpDevice::parse(bad, address)) << bad;
  }
}

// --- Ethernet ----------------------------------------------------------------------------------

// EthernetTest has a veth pair in a network namespace of this thread, which goes away at the end.
class EthernetTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
    original_ = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "no network namespaces here";
    if (std::system("ip link add pma type veth peer name pmb && ip link set pma up && "
                    "ip link set pmb up && ip link set lo up") != 0) {
      GTEST_SKIP() << "cannot make a veth pair";
    }
  }

  void TearDown() override {
    if (original_ < 0) return;
    if (setns(original_, CLONE_NEWNET) != 0) std::abort();
    close(original_);
  }

  static std::unique_ptr<EthernetDevice> device(const char* interface, std::uint32_t rank) {
    const int fd = open_ethernet_socket({interface, 3, rank, 99});
    EXPECT_GE(fd, 0);
    int error = 0;
    auto made = EthernetDevice::attach(fd, error);
    EXPECT_TRUE(made) << error;
    return made;
  }

  // Expects that `count` frames, each `step` bytes longer than the one before, arrive at rank 1
  // unchanged.
  static void expect_carried(EthernetDevice& from, EthernetDevice& to, std::uint32_t count,
                             std::uint32_t step) {
    std::vector<std::vector<std::byte>> frames;
    for (std::uint32_t i = 0; i < count; ++i) {
      auto frame = frame_of(static_cast<std::uint16_t>(i * step), i);
      const std::uint32_t rank = 1;
      std::memcpy(frame.data() + offsetof(FrameHeader, destination), &rank, sizeof rank);
      frames.push_back(std::move(frame));
    }
    Collector got;
    carry(from, to.own_address(), to, got, frames);
    ASSERT_EQ(got.frames.size(), frames.size());
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(got.frames[i], frames[i]) << i;
  }

  int original_ = -1;
};

// The kernel refuses a ring whose blocks are not whole pages.
TEST(RingShape, HasWholePagesOfEverySize) {
  for (const std::size_t page : {4096, 16384, 65536}) {
    for (const std::size_t mtu : {1500, 1920, 1921, 9000, 16'000}) {
      const RingShape shape = RingShape::of(mtu, page);
      EXPECT_EQ(shape.block_bytes % page, 0u) << page << ' ' << mtu;
      EXPECT_GE(shape.space, mtu + 128);
      EXPECT_LE(shape.in_block * shape.space, shape.block_bytes);
      EXPECT_EQ(shape.frames % shape.in_block, 0u);
      EXPECT_GE(shape.frames, 128u);
    }
  }
}

TEST_F(EthernetTest, FramesOfAllSizesKeepTheirLength) {
  const auto a = device("pma", 0);
  const auto b = device("pmb", 1);
  EXPECT_EQ(a->frame_bytes(), 1500u);
  expect_carried(*a, *b, 50, 29);
}

TEST_F(EthernetTest, FilterPassesOnlyOwnChannelRankAndJob) {
  const auto a = device("pma", 0);
  const auto b = device("pmb", 1);
  auto send = [&](std::uint16_t channel, std::uint32_t rank, std::uint64_t key) {
    auto f = frame_of(10, 7, channel);
    std::memcpy(f.data() + offsetof(FrameHeader, destination), &rank, sizeof rank);
    std::memcpy(f.data() + offsetof(FrameHeader, key), &key, sizeof key);
    const FrameOut out{f, {}};
    ASSERT_EQ(a->send(b->own_address(), {&out, 1}), 1u);
  };
  send(4, 1, 99);
  send(3, 2, 99);
  send(3, 1, 98);
  send(3, 1, 99);
  Collector got;
  for (int i = 0; i < 100'000 && got.frames.empty(); ++i) b->receive(got, 64);
  ASSERT_EQ(got.frames.size(), 1u);
  EXPECT_EQ(number_of(got.frames[0]), 7u);
}

TEST_F(EthernetTest, FilterIsLocked) {
  const int fd = open_ethernet_socket({"pma", 3, 0, 99});
  ASSERT_GE(fd, 0);
  const int nothing = 0;
  EXPECT_NE(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &nothing, sizeof nothing), 0);
  close(fd);
  EXPECT_EQ(open_ethernet_socket({"absent", 3, 0, 99}), -ENODEV);
}

TEST_F(EthernetTest, JobRunsInParallelToTcpIp) {
  ASSERT_EQ(std::system("ip addr add 10.78.0.1/24 dev pma"), 0);
  JobNetwork network;
  network.key = 99;
  network.channel = 3;
  network.device.kind = DeviceKind::Ethernet;
  network.ranks = {{"a", "00:00:00:00:00:00"}, {"b", "00:00:00:00:00:00"}};
  std::vector<std::unique_ptr<EthernetDevice>> devices;
  devices.push_back(device("pma", 0));
  devices.push_back(device("pmb", 1));
  std::vector<std::unique_ptr<Endpoint>> ends;
  int error = 0;
  const std::vector<PeerAddress> addresses{devices[0]->own_address(), devices[1]->own_address()};
  for (std::uint32_t i = 0; i < 2; ++i) {
    auto context = create_context(network, i, false, "", error);
    for (std::uint32_t k = 0; k < 2; ++k) context->segment().peer(k).address = addresses[k];
    ends.push_back(Endpoint::make(
        std::move(context), std::move(devices[i]), [](std::uint32_t) { return -1; }, {}, error));
    ASSERT_TRUE(ends[i]) << error;
  }
  std::uint32_t received = 0;
  for (std::uint32_t sent = 0; received < 2000;) {
    std::byte* buffer = nullptr;
    if (sent < 2000 && ends[0]->get_send_buffer(1, 1000, &buffer) == 0) {
      std::memcpy(buffer, &sent, sizeof sent);
      ASSERT_EQ(ends[0]->send(), 0);
      ++sent;
    }
    ends[0]->progress();
    ReceivedMessage m;
    while (ends[1]->receive(m) == 0) {
      std::uint32_t value = 0;
      std::memcpy(&value, m.bytes.data(), sizeof value);
      ASSERT_EQ(value, received);
      ++received;
      ends[1]->release(m);
    }
  }
  // The interface's IP address still answers its own host.
  const int tcp = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(1);
  inet_pton(AF_INET, "10.78.0.1", &to.sin_addr);
  EXPECT_EQ(connect(tcp, reinterpret_cast<sockaddr*>(&to), sizeof to), -1);
  EXPECT_TRUE(errno == ECONNREFUSED || errno == EINPROGRESS);
  close(tcp);
}

TEST_F(EthernetTest, SendingNeverBlocks) {
  const auto a = device("pma", 0);
  const auto b = device("pmb", 1);
  const auto frame = frame_of(1000, 1);
  const std::vector<FrameOut> many(kMaxBatch, FrameOut{frame, {}});
  for (int i = 0; i < 1000; ++i) a->send(b->own_address(), many);  // without a receiver
  ASSERT_EQ(std::system("ip link set pma down"), 0);
  for (int i = 0; i < 1000; ++i) a->send(b->own_address(), many);
}

TEST_F(EthernetTest, FrameWakesWaitingEnd) {
  const auto a = device("pma", 0);
  const auto b = device("pmb", 1);
  auto f = frame_of(10, 7);
  const std::uint32_t rank = 1;
  std::memcpy(f.data() + offsetof(FrameHeader, destination), &rank, sizeof rank);
  const FrameOut out{f, {}};
  pollfd ready{b->poll_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  ASSERT_EQ(a->send(b->own_address(), {&out, 1}), 1u);
  EXPECT_EQ(poll(&ready, 1, 10'000), 1);
  Collector got;
  EXPECT_EQ(b->receive(got, 64), 1u);
  EXPECT_EQ(poll(&ready, 1, 0), 0);
}

// A task's next program does the same.
TEST_F(EthernetTest, SecondDeviceContinuesWithSameSocket) {
  const auto from = device("pma", 0);
  auto to = device("pmb", 1);
  const int kept = dup(to->poll_fd());
  std::vector<std::vector<std::byte>> frames;
  for (std::uint32_t i = 0; i < 50; ++i) {
    auto f = frame_of(20, i);
    const std::uint32_t rank = 1;
    std::memcpy(f.data() + offsetof(FrameHeader, destination), &rank, sizeof rank);
    frames.push_back(f);
  }
  Collector before;
  carry(*from, to->own_address(), *to, before, frames);
  int error = 0;
  to = EthernetDevice::attach(kept, error);
  ASSERT_TRUE(to) << error;
  Collector after;
  carry(*from, to->own_address(), *to, after, frames);
}

// --- libfabric ---------------------------------------------------------------------------------

class OfiTest : public testing::TestWithParam<const char*> {};

// Returns a port that is free for TCP and UDP now and that the kernel gives to no client, because
// libfabric binds it itself.
std::uint16_t free_port() {
  static std::mt19937 random(std::random_device{}());
  for (;;) {
    const auto port = static_cast<std::uint16_t>(10'000 + random() % 22'000);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto is_free = [&address](int type) {
      const int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
      const auto* const at = reinterpret_cast<const sockaddr*>(&address);
      const bool is_bound = bind(fd, at, sizeof address) == 0;
      close(fd);
      return is_bound;
    };
    if (is_free(SOCK_STREAM) && is_free(SOCK_DGRAM)) return port;
  }
}

INSTANTIATE_TEST_SUITE_P(Providers, OfiTest, testing::Values("tcp", "shm", "udp;ofi_rxd"),
                         [](const auto& parameter) {
                           const std::string name = parameter.param;
                           return name == "udp;ofi_rxd" ? std::string("rxd") : name;
                         });

TEST_P(OfiTest, ProviderCarriesJob) {
  JobNetwork network;
  network.key = 99;
  network.device.kind = DeviceKind::Ofi;
  std::strcpy(network.device.provider.data(), GetParam());
  for (int i = 0; i < 2; ++i) {
    network.ranks.push_back({"h", "127.0.0.1:" + std::to_string(free_port())});
  }
  std::vector<std::unique_ptr<Endpoint>> ends;
  // Both ends connect at once, and when libfabric gives up one connection it loses frames.
  EndpointOptions options;
  options.channel.limits.rto_max = 20'000;
  options.channel.tries_before_dead = 255;
  int error = 0;
  for (std::uint32_t i = 0; i < 2; ++i) {
    auto context = create_context(network, i, false, "", error);
    ASSERT_TRUE(context);
    auto device = OfiDevice::open(context->segment(), 0, error);
    if (!device && error == ENOSYS) GTEST_SKIP() << "no provider " << GetParam();
    ASSERT_TRUE(device) << strerror(error);
    ends.push_back(Endpoint::make(
        std::move(context), std::move(device), [](std::uint32_t) { return -1; }, options, error));
    ASSERT_TRUE(ends[i]) << error;
  }
  std::uint32_t received = 0;
  const double limit = 1e6;
  double polls = 0;
  for (std::uint32_t sent = 0; received < 300 && polls < limit; ++polls) {
    std::byte* buffer = nullptr;
    if (sent < 300 && ends[0]->get_send_buffer(1, 1000, &buffer) == 0) {
      std::memcpy(buffer, &sent, sizeof sent);
      ASSERT_EQ(ends[0]->send(), 0);
      ++sent;
    }
    // The test waits instead of polling because libfabric's own thread makes the connection.
    ends[0]->wait(100);
    ReceivedMessage m;
    while (ends[1]->receive(m) == 0) {
      std::uint32_t value = 0;
      std::memcpy(&value, m.bytes.data(), sizeof value);
      ASSERT_EQ(value, received);
      ++received;
      ends[1]->release(m);
    }
  }
  EXPECT_EQ(received, 300u);
  // libfabric's shm provider fails if a peer of the same process is gone, so the test waits until
  // both ends are quiet.
  for (polls = 0; polls < limit && !(ends[0]->is_quiet() && ends[1]->is_quiet()); ++polls) {
    for (auto& end : ends) end->progress();
  }
}

}  // namespace
}  // namespace score::pm
