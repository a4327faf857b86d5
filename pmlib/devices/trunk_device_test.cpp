// These tests check several links as one: order, spreading, and links that lose everything.
#include "pmlib/devices/trunk_device.hpp"

#include "pmlib/devices/ethernet_device.hpp"
#include "pmlib/devices/open_device.hpp"
#include "pmlib/endpoint/endpoint.hpp"
#include "pmlib/network/network.hpp"
#include "tests/support/pmlib/test_wire.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <numeric>
#include <sched.h>
#include <sstream>
#include <unistd.h>

namespace score::pm {
namespace {

// Trunk has two ranks joined by two links.
class Trunk : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 2 << 20;

  explicit Trunk(const LinkWeights& weights = {}) {
    JobNetwork network;
    network.key = 5;
    network.weights = weights;
    network.device.kind = DeviceKind::Udp;
    network.links.push_back({DeviceKind::Udp, {}});
    for (const char* name : {"a", "b"})
      network.ranks.push_back({name, "10.0.0.1:1", {"10.1.0.1:1"}});
    int error = 0;
    for (std::uint32_t i = 0; i < 2; ++i) {
      auto context = create_context(network, i, false, "", error);
      TrunkDevice::Links links;
      for (auto& wire : wires_) links.push_back(std::make_unique<WireDevice>(wire[i], wire[1 - i]));
      auto trunk = TrunkDevice::make(context->segment(), std::move(links), error);
      trunks_[i] = trunk.get();
      ends_[i] = Endpoint::make(
          std::move(context), std::move(trunk), [](std::uint32_t) { return -1; }, {}, error);
      EXPECT_EQ(error, 0);
    }
    std::iota(here_.begin(), here_.end(), std::uint8_t{1});
    std::uint64_t offset = 0;
    EXPECT_EQ(ends_[0]->add_region(here_.data(), kBytes, local_, offset), 0);
    EXPECT_EQ(ends_[1]->add_region(there_.data(), kBytes, remote_, offset), 0);
  }

  // Writes the whole region from rank 0 to rank 1.
  int write_all() {
    const RegionName to{remote_, ends_[1]->segment().region(remote_).nonce, 0};
    OperationId op = 0;
    EXPECT_EQ(ends_[0]->write(1, local_, 0, to, kBytes, op), 0);
    int result = EINPROGRESS;
    for (int i = 0; i < 50'000'000 && result == EINPROGRESS; ++i) {
      ends_[0]->progress();
      ends_[1]->progress();
      result = ends_[0]->test(op);
    }
    return result;
  }

  // Sends `count` numbered messages and expects them in order.
  void exchange(std::uint32_t count) {
    std::uint32_t received = 0;
    for (std::uint32_t sent = 0; received < count;) {
      std::byte* buffer = nullptr;
      if (sent < count && ends_[0]->get_send_buffer(1, 900, &buffer) == 0) {
        std::memcpy(buffer, &sent, sizeof sent);
        ASSERT_EQ(ends_[0]->send(), 0);
        ++sent;
      }
      ends_[0]->progress();
      ReceivedMessage m;
      while (ends_[1]->receive(m) == 0) {
        std::uint32_t value = 0;
        std::memcpy(&value, m.bytes.data(), sizeof value);
        ends_[1]->release(m);
        ASSERT_EQ(value, received++);
      }
    }
  }

  std::array<std::array<Wire, 2>, 2> wires_;  // of each link, by sender
  std::array<TrunkDevice*, 2> trunks_{};
  std::array<std::unique_ptr<Endpoint>, 2> ends_;
  std::vector<std::uint8_t> here_ = std::vector<std::uint8_t>(kBytes);
  std::vector<std::uint8_t> there_ = std::vector<std::uint8_t>(kBytes);
  std::uint32_t local_ = 0, remote_ = 0;
};

TEST_F(Trunk, BurstsAreSpreadOverBothLinks) {
  EXPECT_EQ(write_all(), 0);
  EXPECT_EQ(here_, there_);
  const std::size_t all = wires_[0][0].carried + wires_[1][0].carried;
  EXPECT_GT(wires_[0][0].carried, all / 4);
  EXPECT_GT(wires_[1][0].carried, all / 4);
}

class WeightedTrunk : public Trunk {
 protected:
  WeightedTrunk() : Trunk({1, 3}) {}

  double share_of_second() {
    const std::size_t first = wires_[0][0].carried, second = wires_[1][0].carried;
    return static_cast<double>(second) / static_cast<double>(first + second);
  }
};

TEST_F(WeightedTrunk, BurstsAreSpreadInProportionToWeights) {
  EXPECT_EQ(write_all(), 0);
  EXPECT_EQ(here_, there_);
  EXPECT_NEAR(share_of_second(), 0.75, 0.05);
  EXPECT_EQ(ends_[1]->counters().loses_sent, 0u);
}

TEST_F(WeightedTrunk, OtherLinkTakesShareOfRestingLink) {
  wires_[1][0].is_dead = wires_[1][1].is_dead = true;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(write_all(), 0);
  EXPECT_EQ(here_, there_);
  EXPECT_LT(share_of_second(), 0.5);
}

TEST_F(Trunk, SlowLinkCausesNoResends) {
  wires_[1][0].slowness = 2;
  EXPECT_EQ(write_all(), 0);
  EXPECT_EQ(here_, there_);
  EXPECT_EQ(ends_[1]->counters().loses_sent, 0u);
}

TEST_F(Trunk, DeadLinkLeavesOtherWorking) {
  for (const std::size_t dead : {0, 1}) {
    const std::array<std::size_t, 2> before{wires_[0][0].carried, wires_[1][0].carried};
    wires_[dead][0].is_dead = wires_[dead][1].is_dead = true;
    std::fill(there_.begin(), there_.end(), std::uint8_t{0});
    EXPECT_EQ(write_all(), 0);
    EXPECT_EQ(here_, there_);
    const std::size_t lost = wires_[dead][0].carried - before[dead];
    EXPECT_LT(lost, wires_[1 - dead][0].carried - before[1 - dead]);
    wires_[dead][0].is_dead = wires_[dead][1].is_dead = false;
    for (int i = 0; i < 40 && !trunks_[0]->is_up(dead); ++i) EXPECT_EQ(write_all(), 0);
    const std::size_t back = wires_[dead][0].carried;
    EXPECT_EQ(write_all(), 0);
    EXPECT_GT(wires_[dead][0].carried, back);
  }
}

TEST_F(Trunk, LinkDeadInOneDirectionIsHarmless) {
  wires_[0][1].is_dead = true;  // acknowledgements of rank 1 use this link first
  EXPECT_EQ(write_all(), 0);
  EXPECT_EQ(here_, there_);
  exchange(200);
}

TEST_F(Trunk, MessagesKeepOrderOnTwoLossyLinks) {
  wires_[0][0].loss = wires_[0][1].loss = 0.03;
  wires_[1][0].loss = wires_[1][1].loss = 0.03;
  wires_[1][0].slowness = 3;
  exchange(3000);
}

TEST_F(Trunk, BrokenFramesArePassedOn) {
  std::mt19937 random(3);
  for (int i = 0; i < 5000; ++i) {
    std::vector<std::byte> frame(random() % 2000);
    for (std::byte& byte : frame) byte = static_cast<std::byte>(random());
    if (frame.size() >= sizeof(FrameHeader) && i % 2 == 0) {
      FrameHeader h;  // valid except for a random number
      h.kind = FrameKind::Message;
      h.source = i % 3;
      h.destination = 1;
      h.number = static_cast<std::uint32_t>(random() % 8000);
      std::memcpy(frame.data(), &h, sizeof h);
    }
    wires_[i % 2][0].frames.push_back(std::move(frame));
  }
  exchange(500);
  const Counters& c = ends_[1]->counters();
  EXPECT_GT(c.dropped_malformed + c.dropped_foreign, 4000u);
}

TEST(TrunkNetwork, AddressFileNamesFurtherLinks) {
  JobNetwork network;
  std::string error;
  const std::string head = "key 1\ndevice udp\nlink ethernet eth1\nlink udp\n";
  const std::string a = "rank 0 a 10.0.0.1:1 00:11:22:33:44:55 10.1.0.1:2\n";
  const std::string b = "rank 1 b 10.0.0.2:1 00:11:22:33:44:56 10.1.0.2:2\n";
  ASSERT_TRUE(parse_network(head + a + b, network, error)) << error;
  EXPECT_EQ(network.links.size(), 2u);
  EXPECT_EQ(network.weights, LinkWeights());
  int code = 0;
  const auto context = create_context(network, 0, false, "", code);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->segment().link_address(1, 1).bytes[5], 0x56);
  EXPECT_EQ(context->segment().link_address(2, 1).bytes[3], 2);
  ASSERT_TRUE(parse_network("weights 10 40 255\n" + head + a + b, network, error)) << error;
  EXPECT_EQ(network.weights, (LinkWeights{10, 40, 255}));
  const auto weighted = create_context(network, 0, false, "", code);
  EXPECT_EQ(weighted->segment().header().link_weights, network.weights);
  for (const char* bad :
       {"link\n", "link ofi\n", "link ethernet\n", "link udp\nlink udp\n", "link udp x\n",
        "weights\n", "weights 0\n", "weights 256\n", "weights 1 2 3 4 5\n", "weights x\n"}) {
    EXPECT_FALSE(parse_network(bad + head + a + b, network, error)) << bad;
  }
  EXPECT_FALSE(parse_network(head + a + "rank 1 b 10.0.0.2:1\n", network, error));
}

// TwoCables has two veth pairs in a namespace of this thread, which goes away at the end.
class TwoCables : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root for network namespaces";
    original_ = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (unshare(CLONE_NEWNET) != 0) GTEST_SKIP() << "no network namespaces here";
    if (std::system("ip link add pma mtu 9000 type veth peer name pmb mtu 9000 && "
                    "ip link add pmc mtu 9000 type veth peer name pmd mtu 9000 && "
                    "for i in pma pmb pmc pmd; do ip link set $i up || exit 1; done") != 0) {
      GTEST_SKIP() << "cannot make veth pairs";
    }
  }

  void TearDown() override {
    ends_.clear();
    if (original_ < 0) return;
    if (setns(original_, CLONE_NEWNET) != 0) std::abort();
    close(original_);
  }

  static constexpr const char* kNames[2][2] = {{"pma", "pmc"}, {"pmb", "pmd"}};

  // Makes ranks 0 and 1 over Ethernet, with one or two links.
  void make(std::size_t links, std::uint32_t payload_bytes) {
    JobNetwork network = over_ethernet(payload_bytes);
    for (RankPlace& rank : network.ranks) {
      if (links > 1) rank.link_addresses.push_back("00:00:00:00:00:00");
    }
    if (links > 1) network.links.push_back({DeviceKind::Ethernet, {}});
    open_ends(network);
  }

  static JobNetwork over_ethernet(std::uint32_t payload_bytes) {
    JobNetwork network;
    network.key = 5;
    network.device.kind = DeviceKind::Ethernet;
    network.payload_bytes = payload_bytes;
    network.ranks = {{"a", "00:00:00:00:00:00"}, {"b", "00:00:00:00:00:00"}};
    return network;
  }

  // Fills in interfaces and their addresses.
  void open_ends(JobNetwork& network) {
    std::vector<std::unique_ptr<MappedSegment>> contexts;
    const auto is_ethernet = [&](std::size_t link) {
      return link == 0 || network.links[link - 1].kind == DeviceKind::Ethernet;
    };
    const std::size_t links = network.links.size() + 1;
    int error = 0;
    for (std::uint32_t i = 0; i < 2; ++i) {
      std::strcpy(network.device.interface.data(), kNames[i][0]);
      if (links > 1 && is_ethernet(1)) {
        std::strcpy(network.links[0].name.data(), kNames[i][1]);
      }
      contexts.push_back(create_context(network, i, false, "", error));
      ASSERT_TRUE(contexts.back()) << error;
    }
    for (auto& context : contexts) {
      for (std::uint32_t rank = 0; rank < 2; ++rank) {
        for (std::size_t link = 0; link < links; ++link) {
          if (!is_ethernet(link)) continue;
          const int fd = open_ethernet_socket({kNames[rank][link], 9, 9, 9});
          ASSERT_GE(fd, 0);
          context->segment().link_address(link, rank) =
              EthernetDevice::attach(fd, error)->own_address();
        }
      }
    }
    for (std::uint32_t i = 0; i < 2; ++i) {
      auto device = open_device(contexts[i]->segment(), {}, error);
      ASSERT_EQ(error, 0);
      ends_.push_back(Endpoint::make(
          std::move(contexts[i]), std::move(device), [](std::uint32_t) { return -1; }, {}, error));
      ASSERT_EQ(error, 0);
    }
  }

  // Returns how many bytes an interface of this thread's namespace has sent.
  static std::uint64_t bytes_of(const std::string& name) {
    std::ifstream in("/proc/thread-self/net/dev");
    for (std::string line; std::getline(in, line);) {
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos || line.substr(0, colon).find(name) == std::string::npos) {
        continue;
      }
      std::istringstream words(line.substr(colon + 1));
      std::uint64_t value = 0;
      for (int i = 0; i < 9; ++i) words >> value;  // the ninth: bytes sent
      return value;
    }
    return 0;
  }

  void write_four_megabytes() {
    std::vector<std::uint8_t> here(4 << 20), there(4 << 20);
    std::iota(here.begin(), here.end(), std::uint8_t{1});
    std::uint32_t local = 0, remote = 0;
    std::uint64_t offset = 0;
    ASSERT_EQ(ends_[0]->add_region(here.data(), here.size(), local, offset), 0);
    ASSERT_EQ(ends_[1]->add_region(there.data(), there.size(), remote, offset), 0);
    const RegionName to{remote, ends_[1]->segment().region(remote).nonce, 0};
    OperationId op = 0;
    ASSERT_EQ(ends_[0]->write(1, local, 0, to, 4 << 20, op), 0);
    int result = EINPROGRESS;
    for (int i = 0; i < 20'000'000 && result == EINPROGRESS; ++i) {
      for (auto& end : ends_) end->progress();
      result = ends_[0]->test(op);
    }
    EXPECT_EQ(result, 0);
    EXPECT_EQ(here, there);
    ends_[0]->drop_region(local);
    ends_[1]->drop_region(remote);
  }

  std::vector<std::unique_ptr<Endpoint>> ends_;
  int original_ = -1;
};

TEST_F(TwoCables, UnpluggedCableLeavesOtherWorking) {
  make(2, 1424);
  write_four_megabytes();
  ASSERT_EQ(std::system("ip link set pmd down"), 0);
  write_four_megabytes();
  ASSERT_EQ(std::system("ip link set pmd up"), 0);
  write_four_megabytes();
}

TEST_F(TwoCables, EthernetAndUdpLinksShareLoad) {
  ASSERT_EQ(std::system("ip link set lo up"), 0);
  JobNetwork network = over_ethernet(1424);
  network.links.push_back({DeviceKind::Udp, {}});
  network.ranks[0].link_addresses = {"127.0.0.1:4100"};
  network.ranks[1].link_addresses = {"127.0.0.1:4101"};
  network.weights = {1, 2};
  open_ends(network);
  write_four_megabytes();
  EXPECT_GT(bytes_of("pma"), 300'000u);
  EXPECT_GT(bytes_of("lo"), 300'000u);
  ASSERT_EQ(std::system("ip link set pmb down"), 0);
  write_four_megabytes();
  ASSERT_EQ(std::system("ip link set pmb up"), 0);
  write_four_megabytes();
}

TEST_F(TwoCables, FramesUpToMtuAreCarried) {
  make(1, 9000 - 48);
  write_four_megabytes();
  std::byte* buffer = nullptr;
  ASSERT_EQ(ends_[0]->get_send_buffer(1, 8952, &buffer), 0);
  std::fill_n(buffer, 8952, std::byte{7});
  ASSERT_EQ(ends_[0]->send(), 0);
  ReceivedMessage m;
  int error = EAGAIN;
  for (int i = 0; i < 1'000'000 && error == EAGAIN; ++i) error = ends_[1]->receive(m);
  ASSERT_EQ(error, 0);
  EXPECT_EQ(m.bytes.size(), 8952u);
  EXPECT_EQ(m.bytes.back(), std::byte{7});
  ends_[1]->release(m);
}

TEST_F(TwoCables, FramesAboveMtuAreRefusedAtOpen) {
  JobNetwork network;
  network.key = 5;
  network.device.kind = DeviceKind::Ethernet;
  network.payload_bytes = 9000;
  std::strcpy(network.device.interface.data(), "pma");
  network.ranks = {{"a", "00:00:00:00:00:00"}, {"b", "00:00:00:00:00:00"}};
  int error = 0;
  const auto context = create_context(network, 0, false, "", error);
  ASSERT_TRUE(context);
  EXPECT_FALSE(open_device(context->segment(), {}, error));
  EXPECT_EQ(error, EMSGSIZE);
}

}  // namespace
}  // namespace score::pm
