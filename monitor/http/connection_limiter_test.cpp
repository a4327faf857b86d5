#include "monitor/http/connection_limiter.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace score::monitor {
namespace {

constexpr ConnectionLimiter::Limits kLimits{8, 4, 10, 5, Duration(10ms)};

TEST(ConnectionLimiter, ClosesTheOldestSilentConnection) {
  ConnectionLimiter door(kLimits);
  for (std::uint64_t id = 1; id <= 4; ++id) EXPECT_TRUE(door.enter(id, "a").may_enter);
  door.spoke(1);
  const auto verdict = door.enter(5, "a");
  EXPECT_TRUE(verdict.may_enter);
  EXPECT_EQ(verdict.leaves, 2u);
  EXPECT_EQ(door.size(), 4u);
}

TEST(ConnectionLimiter, RejectsWhenNoConnectionIsSilent) {
  ConnectionLimiter door(kLimits);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    EXPECT_TRUE(door.enter(id, "a").may_enter);
    door.spoke(id);
  }
  EXPECT_FALSE(door.enter(5, "a").may_enter);
  EXPECT_TRUE(door.enter(6, "b").may_enter) << "another peer has its own places";
  door.answered(3);
  EXPECT_EQ(door.enter(7, "a").leaves, 3u);
}

TEST(ConnectionLimiter, ClosesAConnectionOfTheLargestPeer) {
  ConnectionLimiter door(kLimits);
  EXPECT_TRUE(door.enter(1, "small").may_enter);
  for (std::uint64_t id = 2; id <= 5; ++id) EXPECT_TRUE(door.enter(id, "large").may_enter);
  for (std::uint64_t id = 6; id <= 8; ++id) EXPECT_TRUE(door.enter(id, "other").may_enter);
  EXPECT_EQ(door.enter(9, "new").leaves, 2u);
  EXPECT_EQ(door.size(), 8u);
}

TEST(ConnectionLimiter, ChargesRequestsByTheirTime) {
  ConnectionLimiter door(kLimits);
  const TimePoint now(1s);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(door.may_ask("a", now));
  EXPECT_FALSE(door.may_ask("a", now));
  EXPECT_TRUE(door.may_ask("b", now));
  door.charge("b", now, 1s);
  EXPECT_FALSE(door.may_ask("b", now + 5s));
  EXPECT_TRUE(door.may_ask("b", now + 11s));
  EXPECT_TRUE(door.may_ask("a", now + 1s));
}

TEST(ConnectionLimiter, NeverExceedsItsLimits) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    ConnectionLimiter door(kLimits);
    std::set<std::uint64_t> open;
    for (std::uint64_t id = 1; id < 500; ++id) {
      const auto verdict = door.enter(id, std::string(1, static_cast<char>('a' + random() % 5)));
      if (verdict.may_enter) open.insert(id);
      if (verdict.leaves) {
        ASSERT_EQ(open.erase(*verdict.leaves), 1u) << "seed " << seed;
      }
      for (const std::uint64_t one : std::set(open)) {
        const unsigned what = random() % 8;
        if (what == 0) {
          door.left(one);
          open.erase(one);
        } else if (what == 1) {
          door.spoke(one);
        } else if (what == 2) {
          door.answered(one);
        }
      }
      ASSERT_EQ(door.size(), open.size()) << "seed " << seed;
      ASSERT_LE(door.size(), kLimits.connections);
    }
  }
}

}  // namespace
}  // namespace score::monitor
