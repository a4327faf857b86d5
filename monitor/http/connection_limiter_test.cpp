#include "monitor/http/connection_limiter.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace score::monitor {
namespace {

constexpr ConnectionLimiter::Limits kLimits{8, 4, 10, 5, Duration(10ms)};

TEST(ConnectionLimiter, ClosesTheOldestSilentConnection) {
  ConnectionLimiter limiter(kLimits);
  for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_TRUE(limiter.enter(id, "a").may_enter);
  limiter.request_arrived(1);
  const auto verdict = limiter.enter(5, "a");
  EXPECT_TRUE(verdict.may_enter);
  EXPECT_EQ(verdict.leaves, 2u);
  EXPECT_EQ(limiter.size(), 4u);
}

TEST(ConnectionLimiter, RejectsWhenNoConnectionIsSilent) {
  ConnectionLimiter limiter(kLimits);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    EXPECT_TRUE(limiter.enter(id, "a").may_enter);
    limiter.request_arrived(id);
  }
  EXPECT_FALSE(limiter.enter(5, "a").may_enter);
  EXPECT_TRUE(limiter.enter(6, "b").may_enter) << "another peer has its own places";
  limiter.answered(3);
  EXPECT_EQ(limiter.enter(7, "a").leaves, 3u);
}

TEST(ConnectionLimiter, ClosesAConnectionOfTheLargestPeer) {
  ConnectionLimiter limiter(kLimits);
  EXPECT_TRUE(limiter.enter(1, "small").may_enter);
  for (std::uint64_t id = 2; id <= 5; ++id) EXPECT_TRUE(limiter.enter(id, "large").may_enter);
  for (std::uint64_t id = 6; id <= 8; ++id) EXPECT_TRUE(limiter.enter(id, "other").may_enter);
  EXPECT_EQ(limiter.enter(9, "new").leaves, 2u);
  EXPECT_EQ(limiter.size(), 8u);
}

TEST(ConnectionLimiter, ChargesRequestsByTheirTime) {
  ConnectionLimiter limiter(kLimits);
  const TimePoint now(1s);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(limiter.may_ask("a", now));
  EXPECT_FALSE(limiter.may_ask("a", now));
  EXPECT_TRUE(limiter.may_ask("b", now));
  limiter.charge("b", now, 1s);
  EXPECT_FALSE(limiter.may_ask("b", now + 5s));
  EXPECT_TRUE(limiter.may_ask("b", now + 11s));
  EXPECT_TRUE(limiter.may_ask("a", now + 1s));
}

TEST(ConnectionLimiter, NeverExceedsItsLimits) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    ConnectionLimiter limiter(kLimits);
    std::set<std::uint64_t> open;
    for (std::uint64_t id = 1; id < 500; ++id) {
      const auto verdict = limiter.enter(id, std::string(1, static_cast<char>('a' + random() % 5)));
      if (verdict.may_enter) open.insert(id);
      if (verdict.leaves) {
        ASSERT_EQ(open.erase(*verdict.leaves), 1u) << "seed " << seed;
      }
      for (const std::uint64_t one : std::set(open)) {
        const unsigned what = random() % 8;
        if (what == 0) {
          limiter.left(one);
          open.erase(one);
        } else if (what == 1) {
          limiter.request_arrived(one);
        } else if (what == 2) {
          limiter.answered(one);
        }
      }
      ASSERT_EQ(limiter.size(), open.size()) << "seed " << seed;
      ASSERT_LE(limiter.size(), kLimits.connections);
    }
  }
}

}  // namespace
}  // namespace score::monitor
