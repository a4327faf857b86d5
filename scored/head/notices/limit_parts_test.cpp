#include "scored/head/notices/limit_parts.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

TimeUse scheduled(Duration used, Duration limit) {
  return {used, limit, Duration(0), Duration(0)};
}

TEST(LimitParts, AreReachedOnce) {
  EXPECT_TRUE(parts_reached(scheduled(49s, 100s), 0).kinds.empty());
  const auto half = parts_reached(scheduled(50s, 100s), 0);
  EXPECT_TRUE(half.kinds.has(NoticeKind::TimeLimit50));
  EXPECT_EQ(half.percent, 50U);
  EXPECT_TRUE(parts_reached(scheduled(79s, 100s), 50).kinds.empty());
  const auto more = parts_reached(scheduled(95s, 100s), 50);
  EXPECT_TRUE(more.kinds.has(NoticeKind::TimeLimit80) && more.kinds.has(NoticeKind::TimeLimit90));
  EXPECT_FALSE(more.kinds.has(NoticeKind::TimeLimit50));
  EXPECT_EQ(more.percent, 90U);
  EXPECT_TRUE(parts_reached(scheduled(200s, 100s), 90).kinds.empty());
}

TEST(LimitParts, CountForTheLimitThatIsNearer) {
  EXPECT_EQ(parts_reached({10s, 100s, 85s, 100s}, 0).percent, 80U);
  EXPECT_EQ(parts_reached({85s, 100s, 10s, 100s}, 0).percent, 80U);
  EXPECT_EQ(parts_reached({1h, 0s, 1h, 0s}, 0).percent, 0U) << "there is no limit";
}

TEST(LimitParts, NextOneComesAtTheEarliestTime) {
  EXPECT_EQ(time_to_next_part(scheduled(10s, 100s), 0), 40s);
  EXPECT_EQ(time_to_next_part(scheduled(60s, 100s), 50), 20s);
  EXPECT_EQ(time_to_next_part({10s, 100s, 45s, 100s}, 0), 5s);
  EXPECT_EQ(time_to_next_part(scheduled(49'999ms, 100s), 0), kLeastWait);
  EXPECT_EQ(time_to_next_part(scheduled(95s, 100s), 90), std::nullopt);
  EXPECT_EQ(time_to_next_part(scheduled(95s, 0s), 0), std::nullopt);
}

TEST(LimitParts, LongestLimitDoesNotOverflow) {
  const Duration most = Duration::max();
  EXPECT_EQ(parts_reached(scheduled(most, most), 0).percent, 90U);
  EXPECT_GT(*time_to_next_part(scheduled(0s, most), 0), Duration(0));
}

}  // namespace
}  // namespace score::head
