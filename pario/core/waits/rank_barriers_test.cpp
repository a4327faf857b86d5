#include "pario/core/waits/rank_barriers.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <set>

namespace score::pario {
namespace {

using Answers = std::vector<RankBarriers::Answer>;

RankBarriers::Join part(std::uint32_t rank, std::uint32_t size, int error = 0,
                        std::uint32_t sequence = 1) {
  return {{7, sequence}, rank, size, error};
}

TEST(RankBarriers, AnswersAllWhenLastRankArrives) {
  RankBarriers rank_barriers;
  EXPECT_EQ(rank_barriers.join(part(2, 3), 12, 0), Answers());
  EXPECT_EQ(rank_barriers.join(part(0, 3), 10, 0), Answers());
  EXPECT_EQ(rank_barriers.join(part(1, 3), 11, 0), (Answers{{10, 0}, {11, 0}, {12, 0}}));
  EXPECT_EQ(rank_barriers.size(), 0U);
}

TEST(RankBarriers, ErrorOfOneRankReachesAll) {
  RankBarriers rank_barriers;
  rank_barriers.join(part(0, 2, ENOSPC), 1, 0);
  EXPECT_EQ(rank_barriers.join(part(1, 2), 2, 0), (Answers{{1, ENOSPC}, {2, ENOSPC}}));
}

TEST(RankBarriers, CallsOfGroupAreSeparate) {
  RankBarriers rank_barriers;
  rank_barriers.join(part(0, 2, 0, 1), 1, 0);
  EXPECT_EQ(rank_barriers.join(part(1, 2, 0, 2), 2, 0), Answers());
  EXPECT_EQ(rank_barriers.join(part(0, 2, 0, 2), 3, 0), (Answers{{3, 0}, {2, 0}}));
}

TEST(RankBarriers, AllRanksFailWhenWaitingRankDisconnects) {
  RankBarriers rank_barriers;
  rank_barriers.join(part(0, 3), 1, 0);
  rank_barriers.join(part(1, 3), 2, 0);
  EXPECT_EQ(rank_barriers.leave(1, 5), (Answers{{1, ECANCELED}, {2, ECANCELED}}));
  EXPECT_EQ(rank_barriers.join(part(2, 3), 3, 6), (Answers{{3, ECANCELED}}));
  EXPECT_EQ(rank_barriers.leave(99, 5), Answers());
}

TEST(RankBarriers, AllRanksFailWhenOneDoesNotArrive) {
  RankBarriers rank_barriers;
  rank_barriers.join(part(0, 2), 1, 1'000);
  EXPECT_EQ(rank_barriers.tick(1'000 + RankBarriers::kTimeoutMs - 1), Answers());
  EXPECT_EQ(rank_barriers.tick(1'000 + RankBarriers::kTimeoutMs), (Answers{{1, ETIMEDOUT}}));
  EXPECT_EQ(rank_barriers.join(part(1, 2), 2, 70'000), (Answers{{2, ETIMEDOUT}}));
  EXPECT_EQ(rank_barriers.tick(1'000 + 3 * RankBarriers::kTimeoutMs), Answers());
  EXPECT_EQ(rank_barriers.size(), 0U);
}

TEST(RankBarriers, RefusesWrongSizesRanksAndTooManyGroups) {
  RankBarriers rank_barriers;
  EXPECT_EQ(rank_barriers.join(part(0, 0), 1, 0), (Answers{{1, EINVAL}}));
  EXPECT_EQ(rank_barriers.join(part(4, 4), 1, 0), (Answers{{1, EINVAL}}));
  EXPECT_EQ(rank_barriers.join(part(0, UINT32_MAX), 1, 0), (Answers{{1, EINVAL}}));
  rank_barriers.join(part(0, 4), 1, 0);
  EXPECT_EQ(rank_barriers.join(part(1, 5), 2, 0), (Answers{{2, EINVAL}}));
  EXPECT_EQ(rank_barriers.join(part(0, 4), 3, 0), (Answers{{3, EINVAL}}));
  for (std::uint32_t i = 2; i <= RankBarriers::kMost; ++i)
    rank_barriers.join(part(0, 2, 0, i), i, 0);
  EXPECT_EQ(rank_barriers.size(), RankBarriers::kMost);
  EXPECT_EQ(rank_barriers.join(part(0, 2, 0, 0), 9, 0), (Answers{{9, ENOBUFS}}));
}

// Each token that is not refused gets exactly one answer in all cases.
TEST(RankBarriers, EachTokenGetsOneAnswer) {
  std::mt19937 engine(3);
  const auto chance = [&engine] { return static_cast<std::uint32_t>(engine()); };
  RankBarriers rank_barriers;
  std::multiset<std::uint64_t> open;
  std::int64_t now = 0;
  const auto take = [&](const Answers& answers) {
    for (const auto& answer : answers) ASSERT_EQ(open.erase(answer.token), 1U);
  };
  for (std::uint64_t token = 1; token < 20'000; ++token) {
    now += chance() % 2'000;
    open.insert(token);
    const std::uint32_t size = 1 + chance() % 4;
    take(rank_barriers.join({{chance() % 3, chance() % 3}, chance() % (size + 1), size, 0}, token,
                            now));
    if (chance() % 5 == 0 && !open.empty()) take(rank_barriers.leave(*open.begin(), now));
    if (chance() % 5 == 0) take(rank_barriers.tick(now));
  }
  take(rank_barriers.tick(now + 2 * RankBarriers::kTimeoutMs));
  EXPECT_TRUE(open.empty());
}

}  // namespace
}  // namespace score::pario
