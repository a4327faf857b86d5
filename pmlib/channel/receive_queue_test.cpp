#include "pmlib/channel/receive_queue.hpp"

#include "tests/support/pmlib/test_parts.hpp"

#include <array>

namespace score::pm {
namespace {

class ReceiveQueueTest : public Parts {
 protected:
  void store(std::uint32_t source, FrameKind kind, std::byte value) {
    FrameHeader h;
    h.kind = kind;
    h.source = source;
    h.length = 1;
    received_.store(h, {&value, 1});
  }

  FrameSender frames_{*state_, device_};
  ReceiveQueue received_{*state_, frames_};
};

TEST_F(ReceiveQueueTest, MessagesAreReceivedInArrivalOrder) {
  store(1, FrameKind::Message, std::byte{7});
  store(2, FrameKind::Message, std::byte{8});
  ReceivedMessage first, second, none;
  ASSERT_TRUE(received_.receive(first));
  ASSERT_TRUE(received_.receive(second));
  EXPECT_FALSE(received_.receive(none));
  EXPECT_EQ(first.bytes[0], std::byte{7});
  EXPECT_EQ(second.source, 2u);
}

TEST_F(ReceiveQueueTest, BufferIsKeptUntilReleased) {
  store(1, FrameKind::Message, std::byte{1});
  store(1, FrameKind::Message, std::byte{2});
  EXPECT_FALSE(received_.has_room(state_->peer(1), FrameKind::Message));
  EXPECT_TRUE(received_.has_room(state_->peer(1), FrameKind::Write));
  ReceivedMessage message;
  ASSERT_TRUE(received_.receive(message));
  EXPECT_FALSE(received_.has_room_fast());
  received_.release(message.ticket);
  received_.release(message.ticket);
  EXPECT_TRUE(received_.has_room_fast());
  EXPECT_EQ(state_->header().room.used, 1);
}

TEST_F(ReceiveQueueTest, RefusedSenderGetsGoAndBuffer) {
  store(1, FrameKind::Message, std::byte{1});
  store(1, FrameKind::Message, std::byte{2});
  received_.on_refused(2);
  ReceivedMessage message;
  ASSERT_TRUE(received_.receive(message));
  received_.release(message.ticket);
  ASSERT_EQ(device_.sent.size(), 1u);
  const FrameHeader go = device_.header(0);
  EXPECT_EQ(go.kind, FrameKind::Go);
  EXPECT_EQ(go.destination, 2u);
  EXPECT_EQ(GoFrame(go).free_buffers(), 1);
  EXPECT_TRUE(received_.has_room(state_->peer(2), FrameKind::Message));
  EXPECT_FALSE(received_.has_room(state_->peer(1), FrameKind::Message));
}

TEST_F(ReceiveQueueTest, ReadsAreQueuedSeparately) {
  store(1, FrameKind::ReadRequest, std::byte{9});
  ReceivedMessage message;
  EXPECT_FALSE(received_.receive(message));
  EXPECT_EQ(received_.reads(), 1u);
  EXPECT_EQ(received_.first_read().bytes[0], std::byte{9});
  received_.pop_read();
  EXPECT_FALSE(received_.has_reads());
}

}  // namespace
}  // namespace score::pm
