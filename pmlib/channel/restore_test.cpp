// A restored context must continue under the clock of a different host.
#include "pmlib/channel/channel.hpp"
#include "pmlib/network/network.hpp"
#include "tests/support/pmlib/test_wire.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>

namespace score::pm {
namespace {

class SetClock final : public JobClock {
 public:
  Microseconds now() override { return now_us; }

  Microseconds now_us = 0;
};

constexpr Microseconds kHour = 3'600'000'000u;

class Restored : public testing::TestWithParam<Microseconds> {
 protected:
  Restored() {
    JobNetwork network;
    network.key = 5;
    network.device.kind = DeviceKind::Udp;
    for (const char* name : {"a", "b"}) network.ranks.push_back({name, "10.0.0.1:1", {}});
    int error = 0;
    for (std::uint32_t i = 0; i < 2; ++i) {
      contexts_[i] = create_context(network, i, false, "", error);
      devices_[i] = std::make_unique<WireDevice>(wires_[i], wires_[1 - i]);
    }
    again_ = create_context(network, 0, false, "", error);
  }

  std::unique_ptr<Channel> channel(const MappedSegment& context, int i) {
    return std::make_unique<Channel>(context.segment(), *devices_[i], clock_, ChannelOptions{});
  }

  SetClock clock_;
  std::array<Wire, 2> wires_;  // by sender
  std::array<std::unique_ptr<MappedSegment>, 2> contexts_;
  std::array<std::unique_ptr<WireDevice>, 2> devices_;
  std::unique_ptr<MappedSegment> again_;
};

INSTANTIATE_TEST_SUITE_P(Hosts, Restored, testing::Values(0u, kHour / 4, kHour, kHour / 2 + 1));

TEST_P(Restored, LostMessageIsResentUnderAnyClock) {
  clock_.now_us = kHour / 3;
  std::byte* buffer = nullptr;
  {
    const auto before = channel(*contexts_[0], 0);
    wires_[0].is_dead = true;
    ASSERT_EQ(before->get_send_buffer(1, 3, &buffer), 0);
    std::memcpy(buffer, "abc", 3);
    ASSERT_EQ(before->send(), 0);
  }
  ASSERT_EQ(restore_image(again_->segment(), contexts_[0]->segment().bytes()), 0);
  wires_[0].is_dead = false;
  clock_.now_us = GetParam();
  const auto sender = channel(*again_, 0);
  const auto receiver = channel(*contexts_[1], 1);
  ReceivedMessage message;
  bool has_come = false;
  for (int ms = 0; ms < 3000 && !has_come; ++ms, clock_.now_us += 1000) {
    sender->progress();
    receiver->progress();
    has_come = receiver->received().receive(message);
  }
  ASSERT_TRUE(has_come);
  EXPECT_EQ(std::memcmp(message.bytes.data(), "abc", 3), 0);
}

}  // namespace
}  // namespace score::pm
