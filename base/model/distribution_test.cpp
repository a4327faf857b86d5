#include "base/model/distribution.hpp"

#include <gtest/gtest.h>

namespace score::inline base {
namespace {

using Numbers = std::vector<std::uint32_t>;

TEST(Distribution, BlocksFollowTheNodes) {
  const Numbers counts{2, 0, 3};
  EXPECT_EQ(nodes_of_ranks(counts, Distribution::Block), (Numbers{0, 0, 2, 2, 2}));
  EXPECT_EQ(ranks_of_node(counts, 2, Distribution::Block), (Numbers{2, 3, 4}));
}

TEST(Distribution, CyclicSkipsFullNodes) {
  const Numbers counts{2, 0, 3, 1};
  EXPECT_EQ(nodes_of_ranks(counts, Distribution::Cyclic), (Numbers{0, 2, 3, 0, 2, 2}));
  EXPECT_EQ(ranks_of_node(counts, 2, Distribution::Cyclic), (Numbers{1, 4, 5}));
}

TEST(Distribution, UnknownNodesHaveNoRanks) {
  EXPECT_TRUE(nodes_of_ranks({}, Distribution::Cyclic).empty());
  EXPECT_TRUE(ranks_of_node(Numbers{1}, 7, Distribution::Block).empty());
  EXPECT_TRUE(ranks_of_node(Numbers{1, 0}, 1, Distribution::Cyclic).empty());
}

}  // namespace
}  // namespace score::inline base
