#include "scored/job/pmix/fence_queue.hpp"

#include <gtest/gtest.h>

namespace score::pmix {
namespace {

TEST(FenceQueue, SendsOneFenceAtATime) {
  FenceQueue<int> queue;
  const auto first = queue.enter("a", 10);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->sequence, 1U);
  EXPECT_EQ(first->data, "a");
  EXPECT_FALSE(queue.enter("b", 20));
  const auto done = queue.complete(1);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->token, 10);
  ASSERT_TRUE(done->next);
  EXPECT_EQ(done->next->sequence, 2U);
  EXPECT_EQ(done->next->data, "b");
}

TEST(FenceQueue, IgnoresRepeatedAndUnknownSequences) {
  FenceQueue<int> queue;
  EXPECT_FALSE(queue.complete(1));
  EXPECT_TRUE(queue.enter("a", 1));
  EXPECT_FALSE(queue.complete(2));
  EXPECT_TRUE(queue.complete(1));
  EXPECT_FALSE(queue.complete(1));
  EXPECT_EQ(queue.enter("b", 1)->sequence, 2U);
}

}  // namespace
}  // namespace score::pmix
