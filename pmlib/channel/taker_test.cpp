// These tests check messages that are offered to their owner before they are stored, and ACKs that
// are left to the owner.
#include "tests/support/pmlib/test_pair.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace score::pm {
namespace {

constexpr std::byte kTaken{1}, kPlaced{2}, kStored{3};  // first byte of a message: its handling
constexpr std::uint32_t kBytes = 600;                   // more than the fast path of short ones

// Takes or places messages by their first byte; records the last byte of each, in order.
class Owner final : public MessageConsumer {
 public:
  bool take(std::uint32_t, std::span<const std::byte> bytes) override {
    ++offers;
    if (bytes[0] != kTaken) return false;
    seen.push_back(bytes.back());
    return true;
  }

  Place place(std::uint32_t, std::span<const std::byte> bytes) override {
    if (bytes[0] != kPlaced) return {};
    return {memory.data(), 1};
  }

  void placed(std::uint32_t, std::size_t count) override {
    EXPECT_EQ(count, kBytes - 1);
    seen.push_back(memory[count - 1]);
    ++places;
  }

  std::array<std::byte, kBytes> memory{};
  std::vector<std::byte> seen;
  int offers = 0;
  int places = 0;
};

class Taker : public PairTest {
 protected:
  Taker() : PairTest(shape(), 44) { ends_[1]->set_consumer(&owner_); }

  static Geometry shape() {
    Geometry geometry;
    geometry.send_buffers = 40;
    geometry.descriptors = 48;
    return geometry;
  }

  void send(std::byte what, std::byte value, std::uint32_t from = 0) {
    std::byte* buffer = nullptr;
    ASSERT_EQ(ends_[from]->get_send_buffer(1 - from, kBytes, &buffer), 0);
    std::fill_n(buffer, kBytes, value);
    buffer[0] = what;
    ASSERT_EQ(ends_[from]->send(), 0);
  }

  // Gives stored messages to the owner, too, as it receives them.
  void receive_all() {
    ReceivedMessage message;
    while (ends_[1]->received().receive(message)) {
      owner_.seen.push_back(message.bytes.back());
      ends_[1]->received().release(message.ticket);
    }
  }

  void expect_in_order(std::size_t count) {
    ASSERT_EQ(owner_.seen.size(), count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(owner_.seen[i], std::byte(i)) << i;
  }

  Owner owner_;
};

TEST_F(Taker, TakenMessagesUseNoBuffer) {
  for (unsigned i = 0; i < 6; ++i) send(i % 2 == 0 ? kTaken : kPlaced, std::byte(i));
  ends_[1]->poll();
  ReceivedMessage message;
  EXPECT_FALSE(ends_[1]->received().receive(message));
  EXPECT_GT(owner_.places, 0);
  expect_in_order(6);
  const SegmentHeader& h = contexts_[1]->segment().header();
  EXPECT_EQ(h.room.used, 0);
  EXPECT_EQ(h.counters.messages_received, 6u);
  EXPECT_EQ(h.counters.bytes_received, 6u * kBytes);
}

TEST_F(Taker, NothingIsOfferedBehindWaitingMessage) {
  send(kTaken, std::byte(0));
  send(kStored, std::byte(1));
  send(kTaken, std::byte(2));
  send(kPlaced, std::byte(3));
  ends_[1]->poll();
  EXPECT_EQ(owner_.seen.size(), 1u);
  EXPECT_EQ(owner_.offers, 2);
  receive_all();
  send(kPlaced, std::byte(4));
  ends_[1]->poll();
  expect_in_order(5);
}

TEST_F(Taker, DuplicateAndBrokenFramesAreNotOffered) {
  send(kTaken, std::byte(0));
  ends_[1]->poll();
  ends_[1]->send_due_acks();
  ends_[0]->progress();
  send(kPlaced, std::byte(1));
  auto& frames = wires_[0].frames;
  ASSERT_EQ(frames.size(), 1u);
  const std::vector<std::byte> right = frames.front();
  frames.front().back() ^= std::byte{1};
  ends_[1]->poll();
  EXPECT_EQ(owner_.seen.size(), 1u);
  EXPECT_EQ(contexts_[1]->segment().header().counters.dropped_corrupt, 1u);
  frames.push_back(right);
  frames.push_back(right);
  ends_[1]->poll();
  expect_in_order(2);
  EXPECT_EQ(contexts_[1]->segment().header().counters.duplicates, 1u);
}

TEST_F(Taker, NoMessageIsLostOnLossyLink) {
  wires_[0].loss = wires_[1].loss = 0.1;
  constexpr unsigned kCount = 200;
  unsigned sent = 0;
  for (int turn = 0; turn < 1'000'000 && owner_.seen.size() < kCount; ++turn) {
    std::byte* buffer = nullptr;
    if (sent < kCount && ends_[0]->get_send_buffer(1, kBytes, &buffer) == 0) {
      std::fill_n(buffer, kBytes, std::byte(sent));
      buffer[0] = std::array{kTaken, kPlaced, kStored}[sent % 7 % 3];
      ASSERT_EQ(ends_[0]->send(), 0);
      ++sent;
    }
    clock_.time += 20;
    ends_[0]->progress();
    ends_[1]->poll();
    receive_all();
    ends_[1]->send_due_acks();
  }
  expect_in_order(kCount);
}

TEST_F(Taker, AcksOfBurstRideOnAnswer) {
  for (unsigned i = 0; i < 20; ++i) send(kTaken, std::byte(i));
  ends_[1]->poll();
  EXPECT_EQ(wires_[1].carried, 0u);
  send(kStored, std::byte(0), 1);
  ends_[1]->send_due_acks();
  EXPECT_EQ(wires_[1].carried, 1u);
  ends_[0]->progress();
  EXPECT_TRUE(ends_[0]->queues().is_empty());
}

TEST_F(Taker, PartsOweNoAckUntilLastOne) {
  for (unsigned i = 0; i < 20; ++i) send(i == 0 ? kTaken : kPlaced, std::byte(i));
  ends_[1]->poll();
  ends_[1]->poll();
  ends_[1]->send_due_acks();
  EXPECT_EQ(owner_.places, 19);
  EXPECT_EQ(wires_[1].carried, 0u);
  send(kTaken, std::byte(20));
  ends_[1]->poll();
  ends_[1]->send_due_acks();
  EXPECT_EQ(wires_[1].carried, 1u);
  expect_in_order(21);
}

TEST_F(Taker, AcksOfBurstAreSentAloneWithoutAnswer) {
  for (unsigned i = 0; i < 20; ++i) send(kTaken, std::byte(i));
  ends_[1]->poll();
  EXPECT_EQ(wires_[1].carried, 0u);
  ends_[1]->send_due_acks();
  EXPECT_EQ(wires_[1].carried, 1u);
  ends_[1]->send_due_acks();
  EXPECT_EQ(wires_[1].carried, 1u);
  // If the owner does not call send_due_acks(), the next poll sends the ACKs.
  for (unsigned i = 0; i < 20; ++i) send(kTaken, std::byte(i));
  ends_[1]->poll();
  EXPECT_EQ(wires_[1].carried, 1u);
  ends_[1]->poll();
  EXPECT_EQ(wires_[1].carried, 2u);
}

}  // namespace
}  // namespace score::pm
