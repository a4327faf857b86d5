#include "scored/job/probe/pair_rounds.hpp"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace score::probe {
namespace {

using Pairs = std::multiset<std::pair<std::uint32_t, std::uint32_t>>;

// Returns all pairs, each with the lower rank first, and checks that partners agree.
Pairs pairs_of(std::uint32_t ranks) {
  Pairs pairs;
  for (std::uint32_t round = 0; round < round_count(ranks); ++round) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const auto other = partner(rank, round, ranks);
      if (!other) continue;
      EXPECT_NE(*other, rank);
      EXPECT_EQ(partner(*other, round, ranks), rank);
      if (rank < *other) pairs.emplace(rank, *other);
    }
  }
  return pairs;
}

TEST(PairRounds, FewRanksMeetAllOthersOnce) {
  for (std::uint32_t ranks = 0; ranks <= 16; ++ranks) {
    const Pairs pairs = pairs_of(ranks);
    EXPECT_EQ(pairs.size(), ranks < 2 ? 0U : ranks * (ranks - 1) / 2) << ranks;
    EXPECT_EQ(std::set(pairs.begin(), pairs.end()).size(), pairs.size()) << ranks;
  }
}

TEST(PairRounds, ManyRanksMeetFifteenOthers) {
  for (const std::uint32_t ranks : {17U, 18U, 63U, 64U, 1000U}) {
    EXPECT_EQ(round_count(ranks), 15U);
    const Pairs pairs = pairs_of(ranks);
    EXPECT_EQ(std::set(pairs.begin(), pairs.end()).size(), pairs.size()) << ranks;
    EXPECT_GE(pairs.size(), (ranks - 1) / 2 * 15) << ranks;
  }
}

}  // namespace
}  // namespace score::probe
