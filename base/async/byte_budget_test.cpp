#include "base/async/byte_budget.hpp"

#include <gtest/gtest.h>

#include <list>
#include <random>

namespace score {
namespace {

TEST(ByteBudget, CountsSharesAsLongAsTheyLive) {
  const auto budget = std::make_shared<ByteBudget>(100, 200);
  {
    ByteShare one(budget, 60);
    EXPECT_TRUE(budget->has_room());
    ByteShare other(budget, 60);
    EXPECT_FALSE(budget->has_room());
    EXPECT_TRUE(budget->may_add(80));
    EXPECT_FALSE(budget->may_add(81));
    one.set(10);
    EXPECT_EQ(budget->used(), 70u);
  }
  EXPECT_EQ(budget->used(), 0u);
}

TEST(ByteBudget, AcceptsAnOversizeItemOnlyAlone) {
  const auto budget = std::make_shared<ByteBudget>(100, 200);
  EXPECT_TRUE(budget->may_add(1'000));
  const ByteShare small(budget, 1);
  EXPECT_FALSE(budget->may_add(1'000));
}

TEST(ByteBudget, ChargeToMovesHeldBytes) {
  const auto first = std::make_shared<ByteBudget>(100, 200);
  const auto second = std::make_shared<ByteBudget>(100, 200);
  ByteShare share(nullptr, 50);
  share.charge_to(first);
  EXPECT_EQ(first->used(), 50u);
  share.charge_to(second);
  EXPECT_EQ(first->used(), 0u);
  EXPECT_EQ(second->used(), 50u);
}

TEST(ByteBudget, AlwaysEqualsTheSumOfItsShares) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    const auto budget = std::make_shared<ByteBudget>(1'000, 2'000);
    std::list<ByteShare> shares;
    for (int step = 0; step < 200; ++step) {
      const std::size_t bytes = random() % 500;
      if (shares.empty() || random() % 3 == 0) {
        shares.emplace_back(budget, bytes);
      } else if (random() % 2 == 0) {
        shares.front().set(bytes);
      } else {
        shares.pop_front();
      }
      std::size_t sum = 0;
      for (const ByteShare& share : shares) sum += share.bytes();
      ASSERT_EQ(budget->used(), sum) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace score
