#include "pmlib/sending/send_window.hpp"

#include "tests/support/pmlib/test_parts.hpp"

#include <vector>

namespace score::pm {
namespace {

class SendWindowTest : public Parts {
 protected:
  std::uint16_t message(std::uint32_t rank) {
    std::byte* memory = nullptr;
    EXPECT_EQ(queues_.lend(rank, 10, &memory), 0);
    return queues_.take_built();
  }

  std::vector<std::uint32_t> numbers() const {
    std::vector<std::uint32_t> all;
    for (const auto& frame : device_.sent) all.push_back(header_of(frame).number);
    return all;
  }

  SendQueues queues_{*state_};
  FrameSender frames_{*state_, device_};
  OwedAcks acks_{*state_, frames_, {}};
  SendWindow window_{*state_, queues_, frames_, acks_};
};

TEST_F(SendWindowTest, SendsAtOnceAndFreesAcknowledgedFrames) {
  window_.enqueue(1, message(1));
  EXPECT_EQ(numbers(), std::vector<std::uint32_t>{1});
  EXPECT_FALSE(queues_.is_empty());
  window_.on_control(1, {ControlKind::Ack, 1, 0, 0});
  EXPECT_TRUE(queues_.is_empty());
}

TEST_F(SendWindowTest, FramesRefusedByDeviceAreSentLater) {
  device_.room = 0;
  window_.enqueue(1, message(1));
  EXPECT_TRUE(numbers().empty());
  device_.room = 1;
  EXPECT_EQ(window_.send_ready(), 1u);
  EXPECT_EQ(numbers(), std::vector<std::uint32_t>{1});
  EXPECT_EQ(window_.send_ready(), 0u);
}

TEST_F(SendWindowTest, FramesToSendTogetherAreHeld) {
  window_.enqueue_later(1, message(1));
  window_.enqueue(1, message(1));
  EXPECT_EQ(numbers(), (std::vector<std::uint32_t>{1, 2}));
}

TEST_F(SendWindowTest, FrameIsResentAfterTimeout) {
  window_.enqueue(1, message(1));
  pass(1'000'000);
  ASSERT_TRUE(window_.must_check_timers());
  int silent = 0;
  window_.check_timers(1, [&](std::uint32_t rank) { silent += static_cast<int>(rank); });
  window_.send_ready();
  EXPECT_EQ(numbers(), (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(silent, 1);
}

TEST_F(SendWindowTest, ForgettingPeerDropsItsQueue) {
  window_.enqueue(2, message(2));
  window_.forget(2);
  EXPECT_TRUE(queues_.is_empty());
  EXPECT_EQ(window_.next_deadline(clock_.time, INT32_MAX), INT32_MAX);
}

}  // namespace
}  // namespace score::pm
