// These tests send writes of many frames over a link that corrupts, loses and reorders them. The
// bytes next to the written range never change, and the range holds the sent bytes once the write
// is over.
#include "tests/support/pmlib/test_pair.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <random>
#include <vector>

namespace score::pm {
namespace {

constexpr std::size_t kBeside = 5000;  // bytes before and after the written ones
constexpr std::uint32_t kBytes = 30'000;
constexpr std::byte kUntouched{0xee};

class LongWrites : public PairTest {
 protected:
  LongWrites() : PairTest(Geometry(), 44) {
    for (auto& b : source_) b = static_cast<std::byte>(random_());
    contexts_[0]->segment().region(0) = {address(source_), source_.size(), 8, 1, 0};
    contexts_[1]->segment().region(0) = {address(target_), target_.size(), 9, 1, 0};
  }

  static std::uintptr_t address(std::vector<std::byte>& memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }

  OperationId write(std::uint32_t offset, std::uint32_t length) {
    OperationId op = 0;
    EXPECT_EQ(ends_[0]->memory().write(1, 0, offset, {0, 9, kBeside + offset}, length, op), 0);
    return op;
  }

  // Changes bytes of frames in flight, two of three in headers.
  void break_some() {
    auto& frames = wires_[0].frames;
    for (int i = 0; i < 3 && !frames.empty(); ++i) {
      auto& frame = frames[random_() % frames.size()];
      const std::size_t reach = i % 2 == 0 ? sizeof(FrameHeader) + sizeof(RmaHeader) : frame.size();
      frame[random_() % std::min(reach, frame.size())] ^=
          static_cast<std::byte>(1 + random_() % 255);
    }
  }

  void swap_two() {
    auto& frames = wires_[0].frames;
    if (frames.size() > 1) std::swap(frames[random_() % frames.size()], frames.back());
  }

  void turn() {
    clock_.time += 300;
    for (auto& end : ends_) end->progress();
  }

  bool is_beside_untouched() const {
    const auto is_untouched = [](std::byte b) { return b == kUntouched; };
    return std::all_of(target_.begin(), target_.begin() + kBeside, is_untouched) &&
           std::all_of(target_.end() - kBeside, target_.end(), is_untouched);
  }

  void expect_written(OperationId op) {
    EXPECT_EQ(Operations(contexts_[0]->segment()).test(op), 0);
    EXPECT_TRUE(std::equal(source_.begin(), source_.end(), target_.begin() + kBeside));
    EXPECT_TRUE(is_beside_untouched());
  }

  std::mt19937 random_{3};
  std::vector<std::byte> source_ = std::vector<std::byte>(kBytes);
  std::vector<std::byte> target_ = std::vector<std::byte>(kBytes + 2 * kBeside, kUntouched);
};

// A frame in the middle goes directly to its destination: broken bytes lie there until the frame is
// resent.
TEST_F(LongWrites, BrokenFrameIsWrittenAgain) {
  const OperationId op = write(0, kBytes);
  auto& frames = wires_[0].frames;
  ASSERT_GT(frames.size(), 10u);
  frames[5].back() ^= std::byte{1};
  const std::size_t each = frames[5].size() - sizeof(FrameHeader) - sizeof(RmaHeader);
  ends_[1]->progress();
  const auto* at = target_.data() + kBeside + 6 * each - 1;
  EXPECT_EQ(*at, source_[6 * each - 1] ^ std::byte{1});
  EXPECT_EQ(contexts_[1]->segment().header().counters.dropped_corrupt, 1u);
  EXPECT_EQ(contexts_[1]->segment().peer(0).receive.recv, 5u);
  for (int i = 0; i < 40; ++i) turn();
  expect_written(op);
}

TEST_F(LongWrites, BrokenFramesChangeNothingOutsideWrite) {
  for (int round = 0; round < 100; ++round) {
    std::fill(target_.begin() + kBeside, target_.end() - kBeside, kUntouched);
    const OperationId op = write(0, kBytes);
    for (int i = 0; i < 40; ++i) {
      break_some();
      if (round % 2 == 1) swap_two();
      turn();
      ASSERT_TRUE(is_beside_untouched()) << round;
    }
    for (int i = 0; i < 2000 && contexts_[0]->segment().header().free_descriptors <
                                    contexts_[0]->segment().geometry().descriptors;
         ++i) {
      turn();
    }
    expect_written(op);
  }
  EXPECT_GT(contexts_[1]->segment().header().counters.dropped_corrupt, 100u);
}

TEST_F(LongWrites, WritesAndMessagesKeepTheirOrder) {
  wires_[0].loss = 0.02;
  std::byte* buffer = nullptr;
  std::vector<OperationId> ops;
  for (std::uint32_t at = 0; at < kBytes; at += 6000) {
    ops.push_back(write(at, 6000));
    ASSERT_EQ(ends_[0]->get_send_buffer(1, 8, &buffer), 0);
    ASSERT_EQ(ends_[0]->send(), 0);
  }
  for (int i = 0; i < 2000; ++i) turn();
  for (const OperationId op : ops) expect_written(op);
}

}  // namespace
}  // namespace score::pm
