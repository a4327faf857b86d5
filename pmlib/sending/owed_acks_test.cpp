#include "pmlib/sending/owed_acks.hpp"

#include "tests/support/pmlib/test_parts.hpp"

namespace score::pm {
namespace {

class OwedAcksTest : public Parts {
 protected:
  FrameSender frames_{*state_, device_};
  OwedAcks acks_{*state_, frames_, {.delay = 100, .soon = 3, .at_most = 200}};
};

TEST_F(OwedAcksTest, AcksAreDueAfterDelay) {
  acks_.owe(1, FrameKind::Message, false);
  EXPECT_FALSE(acks_.is_due());
  pass(99);
  EXPECT_FALSE(acks_.is_due());
  pass(1);
  EXPECT_TRUE(acks_.is_due());
}

TEST_F(OwedAcksTest, AcksAreSentInOneFramePerPeer) {
  for (int i = 0; i < 2; ++i) acks_.owe(1, FrameKind::Message, false);
  acks_.owe(2, FrameKind::Message, true);
  ASSERT_TRUE(acks_.is_due());
  acks_.send_all();
  ASSERT_EQ(device_.sent.size(), 2u);
  EXPECT_EQ(device_.header(0).kind, FrameKind::Ack);
  EXPECT_EQ(device_.header(1).destination, 2u);
  EXPECT_TRUE(acks_.is_empty());
}

TEST_F(OwedAcksTest, AcksOfManyMessagesAreDueWhenDrained) {
  for (int i = 0; i < 3; ++i) acks_.owe(1, FrameKind::Message, false);
  EXPECT_TRUE(acks_.is_due_soon());
  acks_.end_poll(false);
  EXPECT_FALSE(acks_.is_due());
  acks_.end_poll(true);
  EXPECT_TRUE(acks_.is_due());
}

TEST_F(OwedAcksTest, AcksAreDueAfterHalfWindow) {
  for (int i = 0; i < 7; ++i) acks_.owe(1, FrameKind::Write, false);
  EXPECT_FALSE(acks_.is_due());
  acks_.owe(1, FrameKind::Write, false);
  EXPECT_TRUE(acks_.is_due());
}

TEST_F(OwedAcksTest, AcksRideOnFrame) {
  acks_.owe(1, FrameKind::Message, true);
  acks_.on_sent(state_->peer(1), 1);
  EXPECT_FALSE(acks_.is_due());
  EXPECT_EQ(state_->peer(1).unacked, 0);
  acks_.owe(1, FrameKind::Message, false);
  EXPECT_FALSE(acks_.is_due());
}

}  // namespace
}  // namespace score::pm
