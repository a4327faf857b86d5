#include "scored/head/streams/fence_board.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

constexpr AttemptId kAttempt(257);

FenceBoard board_of(std::size_t nodes) {
  FenceBoard board;
  board.open(kAttempt, nodes);
  return board;
}

TEST(FenceBoard, FinishesInNodeOrderWhenAllHaveEntered) {
  FenceBoard board = board_of(3);
  EXPECT_FALSE(board.enter(kAttempt, 2, 0, "c").value());
  EXPECT_FALSE(board.enter(kAttempt, 0, 0, "a").value());
  const auto done = board.enter(kAttempt, 1, 0, "b").value();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->key_values, "abc");
  EXPECT_EQ(done->sequence, 0u);
  EXPECT_TRUE(done->for_all);
}

TEST(FenceBoard, CountsANodeThatEntersTwiceOnce) {
  FenceBoard board = board_of(2);
  EXPECT_FALSE(board.enter(kAttempt, 0, 1, "a").value());
  EXPECT_FALSE(board.enter(kAttempt, 0, 1, "a").value());
  EXPECT_EQ(board.enter(kAttempt, 1, 1, "b").value()->key_values, "ab");
}

TEST(FenceBoard, RepeatsTheLastResultOnRequest) {
  FenceBoard board = board_of(1);
  ASSERT_TRUE(board.enter(kAttempt, 0, 5, "x").value());
  const auto again = board.enter(kAttempt, 0, 5, "x").value();
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->for_all);
  EXPECT_EQ(again->key_values, "x");
}

TEST(FenceBoard, StartsEachFenceEmpty) {
  FenceBoard board = board_of(2);
  (void)board.enter(kAttempt, 0, 0, "a");
  (void)board.enter(kAttempt, 1, 0, "b");
  EXPECT_FALSE(board.enter(kAttempt, 0, 1, "c").value());
  EXPECT_EQ(board.enter(kAttempt, 1, 1, "").value()->key_values, "c");
}

TEST(FenceBoard, RefusesNodesInDifferentFences) {
  FenceBoard board = board_of(2);
  (void)board.enter(kAttempt, 0, 3, "a");
  const auto entered = board.enter(kAttempt, 1, 4, "b");
  ASSERT_FALSE(entered);
  EXPECT_TRUE(entered.error().is(Errc::WrongState));
}

TEST(FenceBoard, SkipsNodesWhoseTasksHaveEnded) {
  FenceBoard board = board_of(3);
  EXPECT_FALSE(board.leave(kAttempt, 1));  // no fence is open
  EXPECT_FALSE(board.leave(kAttempt, 1));
  EXPECT_FALSE(board.enter(kAttempt, 0, 1, "a").value());
  EXPECT_EQ(board.enter(kAttempt, 2, 1, "c").value()->key_values, "ac");
  EXPECT_FALSE(board.enter(kAttempt, 0, 2, "d").value());
  const auto done = board.leave(kAttempt, 2);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->key_values, "d");
  EXPECT_EQ(done->sequence, 2u);
  EXPECT_EQ(board.enter(kAttempt, 0, 3, "e").value()->key_values, "e");
}

TEST(FenceBoard, KeepsValuesOfANodeThatLeft) {
  FenceBoard board = board_of(2);
  EXPECT_FALSE(board.enter(kAttempt, 1, 1, "b").value());
  EXPECT_FALSE(board.leave(kAttempt, 1));
  EXPECT_EQ(board.enter(kAttempt, 0, 1, "a").value()->key_values, "ab");
  EXPECT_FALSE(board.leave(kAttempt, 2));
  EXPECT_FALSE(board.leave(AttemptId(1), 0));
}

TEST(FenceBoard, RefusesUnknownAttemptsAndNodes) {
  FenceBoard board = board_of(2);
  EXPECT_TRUE(board.enter(AttemptId(1), 0, 0, "").error().is(Errc::NotFound));
  EXPECT_TRUE(board.enter(kAttempt, 2, 0, "").error().is(Errc::NotFound));
  board.close(kAttempt);
  EXPECT_TRUE(board.enter(kAttempt, 0, 0, "").error().is(Errc::NotFound));
  EXPECT_EQ(board.open_attempts(), 0u);
}

TEST(FenceBoard, RefusesKeyValuesBeyondOneFrame) {
  FenceBoard board = board_of(20);
  const std::string large(4 * 1024 * 1024, 'k');
  Result<std::optional<FenceBoard::Done>> entered = std::optional<FenceBoard::Done>();
  for (std::size_t node = 0; node < 20 && entered; ++node) {
    entered = board.enter(kAttempt, node, 0, large);
  }
  ASSERT_FALSE(entered);
  EXPECT_TRUE(entered.error().is(Errc::TooLarge));
}

}  // namespace
}  // namespace score::head
