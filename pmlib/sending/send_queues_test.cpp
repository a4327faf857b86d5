#include "pmlib/sending/send_queues.hpp"

#include "tests/support/pmlib/test_parts.hpp"

#include <array>

namespace score::pm {
namespace {

class SendQueuesTest : public Parts {
 protected:
  std::uint16_t built(std::uint32_t rank) {
    std::byte* memory = nullptr;
    EXPECT_EQ(queues_.lend(rank, 10, &memory), 0);
    return queues_.take_built();
  }

  SendQueues queues_{*state_};
};

TEST_F(SendQueuesTest, FramesAreNumberedWithoutGap) {
  const std::uint16_t message = built(1);
  queues_.append(1, message);
  const std::uint16_t write = queues_.take(SendQueues::For::Application);
  state_->segment.descriptor(write).kind = FrameKind::Write;
  state_->segment.descriptor(write).length = 3 * (256 - sizeof(RmaHeader)) + 1;
  queues_.append(1, write);
  EXPECT_EQ(state_->peer(1).send.queued, 5u);
  EXPECT_EQ(SendQueues::find(state_->segment, message, 1), message);
  EXPECT_EQ(SendQueues::find(state_->segment, message, 2), write);
  EXPECT_EQ(SendQueues::find(state_->segment, message, 5), write);
  EXPECT_EQ(SendQueues::find(state_->segment, message, 6), kNoIndex);
}

TEST_F(SendQueuesTest, FullyAcknowledgedDescriptorIsReturned) {
  const std::uint16_t first = built(1), second = built(1);
  queues_.append(1, first);
  queues_.append(1, second);
  state_->peer(1).send.acked = 1;
  EXPECT_EQ(queues_.pop_acknowledged(1), first);
  EXPECT_EQ(queues_.pop_acknowledged(1), kNoIndex);
  queues_.release(first);
  EXPECT_TRUE(queues_.free_only_message(1));
  EXPECT_TRUE(queues_.is_empty());
}

TEST_F(SendQueuesTest, OneDescriptorIsReservedForPeers) {
  while (queues_.take(SendQueues::For::Application) != kNoIndex) {
  }
  EXPECT_NE(queues_.take(SendQueues::For::Peer), kNoIndex);
  EXPECT_EQ(queues_.take(SendQueues::For::Peer), kNoIndex);
}

TEST_F(SendQueuesTest, MessageBeingBuiltIsCancelled) {
  std::byte* memory = nullptr;
  ASSERT_EQ(queues_.lend(2, 10, &memory), 0);
  EXPECT_TRUE(queues_.is_building());
  queues_.cancel();
  queues_.cancel();
  EXPECT_FALSE(queues_.is_building());
  EXPECT_TRUE(queues_.is_empty());
}

TEST_F(SendQueuesTest, LendsNothingWithoutFreeBuffer) {
  std::byte* memory = nullptr;
  for (int i = 0; i < 6; ++i) queues_.append(1, built(1));
  EXPECT_EQ(queues_.lend(1, 10, &memory), ENOBUFS);
  EXPECT_FALSE(queues_.is_building());
  queues_.drop_all(1);
  EXPECT_TRUE(queues_.is_empty());
  EXPECT_EQ(queues_.lend(1, 10, &memory), 0);
}

}  // namespace
}  // namespace score::pm
