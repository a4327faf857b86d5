#include "pmlib/channel/early_writes.hpp"

#include "tests/support/pmlib/test_parts.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace score::pm {
namespace {

class EarlyWritesTest : public Parts {
 protected:
  EarlyWritesTest() {
    state_->segment.region(0) = {reinterpret_cast<std::uintptr_t>(own_.data()), own_.size(), 9, 1,
                                 0};
    state_->peer(1).receive.set(ReceiveSide<std::uint32_t>::kGap, true);
  }

  // Delivers number `sequence` of rank 1: one byte of a write, after `before` other frames of it.
  void arrive(std::uint32_t sequence, std::uint32_t before, bool is_new) {
    FrameHeader h;
    h.kind = FrameKind::Write;
    h.source = 1;
    SequencedFrame(h).sequence() = sequence;
    const RmaHeader rma{0, 9, sequence, before, RmaHeader::kMiddle};
    std::vector<std::byte> payload(sizeof rma + 1, std::byte{3});
    std::memcpy(payload.data(), &rma, sizeof rma);
    early_.on_early(h, payload, is_new);
  }

  std::array<std::byte, 64> own_{};
  SendQueues queues_{*state_};
  FrameSender frames_{*state_, device_};
  OwedAcks acks_{*state_, frames_, {}};
  SendWindow window_{*state_, queues_, frames_, acks_};
  ReceiveQueue received_{*state_, frames_};
  RemoteMemory memory_{*state_, queues_, window_, received_};
  EarlyWrites early_{*state_, frames_, acks_, memory_};
};

TEST_F(EarlyWritesTest, StoresFrameBehindGapOfSameWrite) {
  arrive(3, 2, true);
  EXPECT_EQ(own_[3], std::byte{3});
  early_.report_gaps();
  ASSERT_EQ(device_.sent.size(), 1u);
  const FrameHeader lose = device_.header(0);
  EXPECT_EQ(lose.kind, FrameKind::Lose);
  EXPECT_EQ(LoseFrame(lose).bit_count(), 3);
  EXPECT_EQ(device_.sent[0].back(), std::byte{0b100});
}

TEST_F(EarlyWritesTest, DoesNotStoreFrameBehindOtherWrite) {
  arrive(3, 1, true);
  EXPECT_EQ(own_[3], std::byte{0});
}

TEST_F(EarlyWritesTest, CountsHeldFramesOnceGapIsClosed) {
  arrive(2, 1, true);
  auto& receive = state_->peer(1).receive;
  state_->engine.on_packet_data(receive, 1, true);
  early_.on_stored(1);
  EXPECT_EQ(receive.recv, 2u);
  EXPECT_TRUE(early_.is_empty());
}

TEST_F(EarlyWritesTest, ForgetsDeadPeer) {
  arrive(2, 1, true);
  early_.forget(1);
  EXPECT_TRUE(early_.is_empty());
}

}  // namespace
}  // namespace score::pm
