#include "pmlib/channel/remote_memory.hpp"

#include "tests/support/pmlib/test_parts.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace score::pm {
namespace {

class RemoteMemoryTest : public Parts {
 protected:
  RemoteMemoryTest() {
    state_->segment.region(0) = {reinterpret_cast<std::uintptr_t>(own_.data()), own_.size(), 9, 1,
                                 0};
  }

  // Returns the payload of a Write of `bytes` to `offset` of the region with `nonce`.
  static std::vector<std::byte> payload(std::uint32_t nonce, std::uint64_t offset,
                                        std::size_t bytes) {
    const RmaHeader rma{0, nonce, offset, 0, RmaHeader::kEnd};
    std::vector<std::byte> all(sizeof rma + bytes, std::byte{3});
    std::memcpy(all.data(), &rma, sizeof rma);
    return all;
  }

  static FrameHeader write_frame() {
    FrameHeader h;
    h.kind = FrameKind::Write;
    h.source = 1;
    return h;
  }

  std::array<std::byte, 600> own_{};
  SendQueues queues_{*state_};
  FrameSender frames_{*state_, device_};
  OwedAcks acks_{*state_, frames_, {}};
  SendWindow window_{*state_, queues_, frames_, acks_};
  ReceiveQueue received_{*state_, frames_};
  RemoteMemory memory_{*state_, queues_, window_, received_};
};

TEST_F(RemoteMemoryTest, OnlyRegisteredMemoryIsAllowed) {
  EXPECT_TRUE(memory_.is_allowed(write_frame(), payload(9, 500, 100)));
  EXPECT_FALSE(memory_.is_allowed(write_frame(), payload(9, 501, 100)));
  EXPECT_FALSE(memory_.is_allowed(write_frame(), payload(8, 0, 1)));
  EXPECT_FALSE(memory_.is_allowed(write_frame(), {}));
}

TEST_F(RemoteMemoryTest, WriteIsStoredAtItsOffset) {
  memory_.store_write(1, payload(9, 10, 2));
  EXPECT_EQ(own_[9], std::byte{0});
  EXPECT_EQ(own_[10], std::byte{3});
  EXPECT_EQ(own_[11], std::byte{3});
  EXPECT_EQ(own_[12], std::byte{0});
}

// Returns frame `index` of a write to offset 10; it is a middle frame unless `place` differs.
std::vector<std::byte> middle(std::uint32_t index, std::uint32_t place = RmaHeader::kMiddle,
                              std::size_t bytes = 20) {
  const RmaHeader rma{0, 9, 10 + 20ull * index, index, place};
  std::vector<std::byte> all(sizeof rma + bytes, std::byte{3});
  std::memcpy(all.data(), &rma, sizeof rma);
  return all;
}

TEST_F(RemoteMemoryTest, NextMiddleFrameOfWriteIsExpected) {
  EXPECT_FALSE(memory_.expects_middle());
  memory_.expect_middle(1, 5, middle(0));
  ASSERT_TRUE(memory_.expects_middle());
  ASSERT_EQ(memory_.place_middle(1, 5, middle(1)), &own_[30]);
  memory_.placed_middle(middle(1));
  EXPECT_EQ(memory_.place_middle(1, 6, middle(2)), &own_[50]);
  EXPECT_EQ(state_->counters().rma_bytes_written, 20u);
  memory_.expect_middle(1, 7, middle(2, RmaHeader::kEnd));
  EXPECT_FALSE(memory_.expects_middle());
}

TEST_F(RemoteMemoryTest, OnlyExpectedFrameIsPlaced) {
  memory_.expect_middle(1, 5, middle(0));
  EXPECT_EQ(memory_.place_middle(2, 5, middle(1)), nullptr);
  EXPECT_EQ(memory_.place_middle(1, 6, middle(1)), nullptr);
  EXPECT_EQ(memory_.place_middle(1, 5, middle(2)), nullptr);
  EXPECT_EQ(memory_.place_middle(1, 5, middle(1, RmaHeader::kEnd)), nullptr);
  EXPECT_EQ(memory_.place_middle(1, 5, middle(1, RmaHeader::kMiddle, 21)), nullptr);
  EXPECT_EQ(memory_.place_middle(1, 5, {}), nullptr);
  for (std::size_t i = 0; i < sizeof(RmaHeader); ++i) {
    auto broken = middle(1);
    broken[i] ^= std::byte{4};
    EXPECT_EQ(memory_.place_middle(1, 5, broken), nullptr) << i;
  }
  state_->segment.region(0).references = 0;
  EXPECT_EQ(memory_.place_middle(1, 5, middle(1)), nullptr);
}

TEST_F(RemoteMemoryTest, WriteEndsWhenLastFrameIsAcknowledged) {
  OperationId op = 0;
  ASSERT_EQ(memory_.write(1, 0, 0, {0, 1, 0}, 600, op), 0);
  ASSERT_EQ(device_.sent.size(), 3u);
  window_.on_control(1, {ControlKind::Ack, 2, 0, 0});
  EXPECT_EQ(state_->operations.test(op), EINPROGRESS);
  window_.on_control(1, {ControlKind::Ack, 3, 0, 0});
  EXPECT_EQ(state_->operations.test(op), 0);
}

TEST_F(RemoteMemoryTest, ReadWithoutBufferLeavesNoOperation) {
  std::byte* memory = nullptr;
  while (queues_.lend(2, 1, &memory) == 0) queues_.append(2, queues_.take_built());
  OperationId op = 7;
  EXPECT_EQ(memory_.read(1, 0, 0, {0, 1, 0}, 100, op), ENOBUFS);
  EXPECT_EQ(op, 0u);
  EXPECT_EQ(state_->header().live_operations, 0u);
}

TEST_F(RemoteMemoryTest, ReadIsAnsweredWithWrite) {
  const struct {
    RmaHeader from;
    ReadTarget to;
  } request{{0, 9, 0, 0, 0}, {4, 5, 6, 50, 7}};

  FrameHeader h;
  h.kind = FrameKind::ReadRequest;
  h.source = 1;
  h.length = sizeof request;
  received_.store(h, std::as_bytes(std::span(&request, 1)));
  memory_.answer_reads();
  ASSERT_EQ(device_.sent.size(), 1u);
  EXPECT_EQ(device_.header(0).kind, FrameKind::Write);
  RmaHeader rma;
  std::memcpy(&rma, device_.sent[0].data() + sizeof h, sizeof rma);
  EXPECT_EQ(rma.place, RmaHeader::kReplyEnd);
  EXPECT_EQ(WriteEnd(rma).operation(), 7u);
  EXPECT_FALSE(received_.has_reads());
}

}  // namespace
}  // namespace score::pm
