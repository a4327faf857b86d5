// These tests check messages that may wait for those that follow them.
#include "tests/support/pmlib/test_pair.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>

namespace score::pm {
namespace {

class Held : public PairTest {
 protected:
  Held() : PairTest(shape(), 16) {}

  static Geometry shape() {
    Geometry geometry;
    geometry.send_buffers = 8;
    return geometry;
  }

  void send(std::byte value, bool more_follows) {
    std::byte* buffer = nullptr;
    ASSERT_EQ(ends_[0]->get_send_buffer(1, 1, &buffer), 0);
    *buffer = value;
    ASSERT_EQ(ends_[0]->send(more_follows), 0);
  }

  void expect_in_order(unsigned count) {
    ends_[1]->progress();
    for (unsigned i = 0; i < count; ++i) {
      ReceivedMessage message;
      ASSERT_TRUE(ends_[1]->received().receive(message));
      EXPECT_EQ(message.bytes[0], std::byte(i));
      ends_[1]->received().release(message.ticket);
    }
  }
};

TEST_F(Held, HeldMessagesAreSentInOneOrderedBatch) {
  for (unsigned i = 0; i < 4; ++i) send(std::byte(i), i < 3);
  EXPECT_EQ(wires_[0].batches, 1u);
  EXPECT_EQ(wires_[0].carried, 4u);
  expect_in_order(4);
}

TEST_F(Held, HeldMessageIsSentWhenNoneFollows) {
  send(std::byte(0), true);
  EXPECT_EQ(wires_[0].carried, 0u);
  ends_[0]->send_held(1);
  EXPECT_EQ(wires_[0].carried, 1u);
  expect_in_order(1);
}

TEST_F(Held, LastHeldMessageRequestsAck) {
  for (unsigned i = 0; i < 3; ++i) send(std::byte(i), true);
  ends_[0]->send_held(1);
  expect_in_order(3);
  EXPECT_EQ(wires_[1].carried, 1u);
  ends_[0]->progress();
  EXPECT_TRUE(ends_[0]->queues().is_empty());
}

TEST_F(Held, HeldMessagesAreSentByNextTurn) {
  send(std::byte(0), true);
  send(std::byte(1), true);
  EXPECT_FALSE(ends_[0]->is_quiet());
  Microseconds due = 1;
  EXPECT_TRUE(ends_[0]->next_deadline(due));
  EXPECT_EQ(due, 0u);
  ends_[0]->progress();
  EXPECT_EQ(wires_[0].carried, 2u);
  expect_in_order(2);
}

}  // namespace
}  // namespace score::pm
