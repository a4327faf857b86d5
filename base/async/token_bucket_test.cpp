#include "base/async/token_bucket.hpp"

#include <gtest/gtest.h>

namespace score {
namespace {

TEST(TokenBucket, AllowsTheBurstAndThenTheRate) {
  TokenBucket bucket(10, 3);
  TimePoint now(1h);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(bucket.try_take(now));
  EXPECT_FALSE(bucket.try_take(now));
  int taken = 0;
  for (int i = 0; i < 1000; ++i) taken += bucket.try_take(now += 10ms) ? 1 : 0;
  EXPECT_NEAR(taken, 100, 1);
}

TEST(TokenBucket, NeverHoldsMoreThanTheBurst) {
  TokenBucket bucket(1000, 2);
  EXPECT_TRUE(bucket.try_take(TimePoint(1h), 2));
  EXPECT_TRUE(bucket.try_take(TimePoint(2h), 2));
  EXPECT_FALSE(bucket.try_take(TimePoint(2h)));
}

TEST(TokenBucket, GainsNothingFromTimeGoingBack) {
  TokenBucket bucket(1, 1);
  EXPECT_TRUE(bucket.try_take(TimePoint(10s)));
  EXPECT_FALSE(bucket.try_take(TimePoint(5s)));
  EXPECT_FALSE(bucket.try_take(TimePoint(10s)));
  EXPECT_TRUE(bucket.try_take(TimePoint(11s)));
}

TEST(TokenBucket, ReserveReturnsTheCallersTurn) {
  TokenBucket bucket(10, 2);
  const TimePoint start{1s};
  EXPECT_EQ(bucket.reserve(start), start);
  EXPECT_EQ(bucket.reserve(start), start);
  EXPECT_EQ(bucket.reserve(start), start + 100ms);
  EXPECT_EQ(bucket.reserve(start), start + 200ms);
  EXPECT_FALSE(bucket.try_take(start + 200ms)) << "the refill belongs to the caller that waited";
  EXPECT_EQ(bucket.reserve(start + 1s), start + 1s);
}

TEST(TokenBucket, CountsRefusals) {
  TokenBucket bucket(1, 1);
  EXPECT_FALSE(bucket.try_take(TimePoint(), 5));
  EXPECT_TRUE(bucket.try_take(TimePoint()));
  EXPECT_EQ(bucket.take_refused(), 1U);
}

}  // namespace
}  // namespace score
