#include "scored/head/streams/fence_collector.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

constexpr AttemptId kAttempt(257);

FenceCollector board_of(std::size_t nodes) {
  FenceCollector collector;
  collector.open(kAttempt, nodes);
  return collector;
}

TEST(FenceCollector, FinishesInNodeOrderWhenAllHaveEntered) {
  FenceCollector collector = board_of(3);
  EXPECT_FALSE(collector.enter(kAttempt, 2, 0, "c").value());
  EXPECT_FALSE(collector.enter(kAttempt, 0, 0, "a").value());
  const auto done = collector.enter(kAttempt, 1, 0, "b").value();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->key_values, "abc");
  EXPECT_EQ(done->sequence, 0u);
  EXPECT_TRUE(done->for_all);
}

TEST(FenceCollector, CountsANodeThatEntersTwiceOnce) {
  FenceCollector collector = board_of(2);
  EXPECT_FALSE(collector.enter(kAttempt, 0, 1, "a").value());
  EXPECT_FALSE(collector.enter(kAttempt, 0, 1, "a").value());
  EXPECT_EQ(collector.enter(kAttempt, 1, 1, "b").value()->key_values, "ab");
}

TEST(FenceCollector, RepeatsTheLastResultOnRequest) {
  FenceCollector collector = board_of(1);
  ASSERT_TRUE(collector.enter(kAttempt, 0, 5, "x").value());
  const auto again = collector.enter(kAttempt, 0, 5, "x").value();
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->for_all);
  EXPECT_EQ(again->key_values, "x");
}

TEST(FenceCollector, StartsEachFenceEmpty) {
  FenceCollector collector = board_of(2);
  (void)collector.enter(kAttempt, 0, 0, "a");
  (void)collector.enter(kAttempt, 1, 0, "b");
  EXPECT_FALSE(collector.enter(kAttempt, 0, 1, "c").value());
  EXPECT_EQ(collector.enter(kAttempt, 1, 1, "").value()->key_values, "c");
}

TEST(FenceCollector, RefusesNodesInDifferentFences) {
  FenceCollector collector = board_of(2);
  (void)collector.enter(kAttempt, 0, 3, "a");
  const auto entered = collector.enter(kAttempt, 1, 4, "b");
  ASSERT_FALSE(entered);
  EXPECT_TRUE(entered.error().is(Errc::WrongState));
}

TEST(FenceCollector, SkipsNodesWhoseTasksHaveEnded) {
  FenceCollector collector = board_of(3);
  EXPECT_FALSE(collector.leave(kAttempt, 1));  // no fence is open
  EXPECT_FALSE(collector.leave(kAttempt, 1));
  EXPECT_FALSE(collector.enter(kAttempt, 0, 1, "a").value());
  EXPECT_EQ(collector.enter(kAttempt, 2, 1, "c").value()->key_values, "ac");
  EXPECT_FALSE(collector.enter(kAttempt, 0, 2, "d").value());
  const auto done = collector.leave(kAttempt, 2);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->key_values, "d");
  EXPECT_EQ(done->sequence, 2u);
  EXPECT_EQ(collector.enter(kAttempt, 0, 3, "e").value()->key_values, "e");
}

TEST(FenceCollector, KeepsValuesOfANodeThatLeft) {
  FenceCollector collector = board_of(2);
  EXPECT_FALSE(collector.enter(kAttempt, 1, 1, "b").value());
  EXPECT_FALSE(collector.leave(kAttempt, 1));
  EXPECT_EQ(collector.enter(kAttempt, 0, 1, "a").value()->key_values, "ab");
  EXPECT_FALSE(collector.leave(kAttempt, 2));
  EXPECT_FALSE(collector.leave(AttemptId(1), 0));
}

TEST(FenceCollector, RefusesUnknownAttemptsAndNodes) {
  FenceCollector collector = board_of(2);
  EXPECT_TRUE(collector.enter(AttemptId(1), 0, 0, "").error().is(Errc::NotFound));
  EXPECT_TRUE(collector.enter(kAttempt, 2, 0, "").error().is(Errc::NotFound));
  collector.close(kAttempt);
  EXPECT_TRUE(collector.enter(kAttempt, 0, 0, "").error().is(Errc::NotFound));
  EXPECT_EQ(collector.open_attempts(), 0u);
}

TEST(FenceCollector, RefusesKeyValuesBeyondOneFrame) {
  FenceCollector collector = board_of(20);
  const std::string large(4 * 1024 * 1024, 'k');
  Result<std::optional<FenceCollector::Done>> entered = std::optional<FenceCollector::Done>();
  for (std::size_t node = 0; node < 20 && entered; ++node) {
    entered = collector.enter(kAttempt, node, 0, large);
  }
  ASSERT_FALSE(entered);
  EXPECT_TRUE(entered.error().is(Errc::TooLarge));
}

}  // namespace
}  // namespace score::head
