// These tests check registered memory that is sent as many messages.
#include "pmlib/channel/channel.hpp"
#include "tests/support/pmlib/test_wire.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace score::pm {
namespace {

constexpr PartHead kHead{{0x1122334455667788, 0x99aabbccddeeff00}};

class TurnClock final : public JobClock {
 public:
  Microseconds now() override { return time; }

  Microseconds time = 1000;
};

// JoiningDevice is a link that prefers contiguous frames if `joins` is set.
class JoiningDevice final : public PacketDevice {
 public:
  JoiningDevice(Wire& out, Wire& in, bool joins) : wire_(out, in), joins_(joins) {}

  std::size_t send(const PeerAddress& to, std::span<const FrameOut> frames) override {
    for (const FrameOut& frame : frames) bodies += frame.body.empty() ? 0 : 1;
    return wire_.send(to, frames);
  }

  std::size_t receive(FrameSink& sink, std::size_t limit) override {
    return wire_.receive(sink, limit);
  }

  int poll_fd() const override { return wire_.poll_fd(); }

  std::size_t frame_bytes() const override { return wire_.frame_bytes(); }

  bool wants_joined() const override { return joins_; }

  unsigned bodies = 0;  // of frames that were gathered

 private:
  WireDevice wire_;
  bool joins_;
};

struct Way {
  FrameAuth auth;
  bool joins;
};

class MemoryInParts : public testing::TestWithParam<Way> {
 protected:
  MemoryInParts() : memory_(20'001) {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = std::byte(i * 7 >> 3);
    for (std::uint32_t i = 0; i < 2; ++i) {
      Geometry geometry;
      geometry.size = 2;
      geometry.operations = 2;
      int error = 0;
      SegmentIdentity identity{.key = 5, .rank = i, .window = 8};
      identity.auth = GetParam().auth;
      contexts_[i] = MappedSegment::create(geometry, identity, error);
      EXPECT_EQ(error, 0);
      devices_[i] = std::make_unique<JoiningDevice>(wires_[i], wires_[1 - i], GetParam().joins);
      ends_[i] = std::make_unique<Channel>(contexts_[i]->segment(), *devices_[i], clock_,
                                           ChannelOptions{});
    }
    own().region(0) = {reinterpret_cast<std::uintptr_t>(memory_.data()), memory_.size(), 9, 1, 0};
  }

  const Segment& own() const { return contexts_[0]->segment(); }

  int send(std::uint64_t offset, std::uint32_t length, OperationId& op) {
    return ends_[0]->memory().send_parts(1, 0, offset, length, kHead, op);
  }

  void send_one(std::byte value) {
    std::byte* buffer = nullptr;
    ASSERT_EQ(ends_[0]->get_send_buffer(1, 1, &buffer), 0);
    *buffer = value;
    ASSERT_EQ(ends_[0]->send(true), 0);
  }

  // Runs until messages with `count` bytes in total have arrived.
  void run_until(std::size_t count) {
    for (int turn = 0; turn < 100'000 && bytes_ < count; ++turn) {
      clock_.time += 100;
      ends_[1]->progress();
      ReceivedMessage message;
      while (ends_[1]->received().receive(message)) {
        got_.emplace_back(message.bytes.begin(), message.bytes.end());
        bytes_ += message.bytes.size();
        ends_[1]->received().release(message.ticket);
      }
      ends_[0]->progress();
    }
    EXPECT_EQ(bytes_, count);
  }

  // Joins messages `from` .. `from + count` - 1, each of which must have the head.
  std::vector<std::byte> joined(std::size_t from, std::size_t count) const {
    std::vector<std::byte> all;
    for (std::size_t i = from; i < from + count; ++i) {
      EXPECT_EQ(std::memcmp(got_[i].data(), &kHead, sizeof kHead), 0);
      all.insert(all.end(), got_[i].begin() + sizeof kHead, got_[i].end());
    }
    return all;
  }

  TurnClock clock_;
  std::vector<std::byte> memory_;
  std::array<Wire, 2> wires_;
  std::array<std::unique_ptr<MappedSegment>, 2> contexts_;
  std::array<std::unique_ptr<JoiningDevice>, 2> devices_;
  std::array<std::unique_ptr<Channel>, 2> ends_;
  std::vector<std::vector<std::byte>> got_;
  std::size_t bytes_ = 0;
};

TEST_P(MemoryInParts, PartsArriveBetweenOtherMessages) {
  OperationId op = 0;
  send_one(std::byte{1});
  ASSERT_EQ(send(1, 20'000, op), 0);
  send_one(std::byte{2});
  EXPECT_EQ(Operations(own()).test(op), EINPROGRESS);
  EXPECT_TRUE(ends_[0]->queues().is_region_in_use(0));
  run_until(20'000 + 15 * sizeof kHead + 2);  // 1408 bytes per message
  ASSERT_EQ(got_.size(), 17u);
  EXPECT_EQ(got_[0][0], std::byte{1});
  EXPECT_EQ(got_[16][0], std::byte{2});
  EXPECT_EQ(joined(1, 15), std::vector(memory_.begin() + 1, memory_.end()));
  ends_[1]->acks().send_all();
  ends_[0]->progress();
  EXPECT_EQ(Operations(own()).test(op), 0);
  EXPECT_FALSE(ends_[0]->queues().is_region_in_use(0));
  EXPECT_TRUE(ends_[0]->is_quiet());
  const Counters& sent = own().header().counters;
  EXPECT_EQ(sent.messages_sent, 17u);
  EXPECT_EQ(sent.bytes_sent, bytes_);
  EXPECT_EQ(devices_[0]->bodies == 0, GetParam().joins);
}

TEST_P(MemoryInParts, LostPartsAreResentFromMemory) {
  wires_[0].lost = {0, 3, 4, 11};
  OperationId op = 0;
  ASSERT_EQ(send(0, 20'001, op), 0);
  run_until(20'001 + 15 * sizeof kHead);
  EXPECT_EQ(joined(0, 15), memory_);
  ends_[1]->acks().send_all();
  ends_[0]->progress();
  EXPECT_EQ(Operations(own()).test(op), 0);
  EXPECT_GT(own().header().counters.frames_resent, 0u);
}

TEST_P(MemoryInParts, UnregisteredMemoryIsRefused) {
  OperationId op = 0;
  EXPECT_EQ(send(0, 0, op), EINVAL);
  EXPECT_EQ(send(2, 20'000, op), EINVAL);
  EXPECT_EQ(ends_[0]->memory().send_parts(1, 1, 0, 1, kHead, op), EINVAL);
  EXPECT_EQ(ends_[0]->memory().send_parts(2, 0, 0, 1, kHead, op), EINVAL);
  ASSERT_EQ(send(0, 1, op), 0);
  ASSERT_EQ(send(0, 1, op), 0);
  const auto free = own().header().free_descriptors;
  EXPECT_EQ(send(0, 1, op), ENOBUFS);
  EXPECT_EQ(own().header().free_descriptors, free);
}

TEST_P(MemoryInParts, OperationEndsWithItsPeer) {
  OperationId op = 0;
  ASSERT_EQ(send(0, 20'000, op), 0);
  ends_[0]->declare_dead(1);
  EXPECT_EQ(Operations(own()).test(op), EHOSTDOWN);
  EXPECT_FALSE(ends_[0]->queues().is_region_in_use(0));
  EXPECT_EQ(send(0, 1, op), EHOSTDOWN);
}

TEST_P(MemoryInParts, PartsAreKeptInSavedContext) {
  OperationId op = 0;
  ASSERT_EQ(send(0, 20'000, op), 0);

  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };

  std::vector<Line> lines(own().bytes().size() / sizeof(Line));
  std::memcpy(lines.data(), own().bytes().data(), own().bytes().size());
  const auto image = std::as_bytes(std::span(lines));
  ASSERT_EQ(validate_image(image), 0);
  ends_[0]->declare_dead(1);  // all of it is dropped here
  ends_[0].reset();
  wires_[0].frames.clear();
  ASSERT_EQ(restore_image(own(), image), 0);
  ends_[0] = std::make_unique<Channel>(own(), *devices_[0], clock_, ChannelOptions{});
  run_until(20'000 + 15 * sizeof kHead);
  EXPECT_EQ(joined(0, 15), std::vector(memory_.begin(), memory_.end() - 1));
}

INSTANTIATE_TEST_SUITE_P(Ways, MemoryInParts,
                         testing::Values(Way{FrameAuth::Key, false}, Way{FrameAuth::Key, true},
                                         Way{FrameAuth::Tag, false}, Way{FrameAuth::Tag, true}));

}  // namespace
}  // namespace score::pm
