#include "gang/control/tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace score::gang {
namespace {

using Some = std::vector<Position>;

TEST(Tree, NumbersSubtreesInOneRange) {
  const Tree tree(11, 3);  // 0; 1 {2 3 4}, 5 {6 7}, 8 {9 10}
  EXPECT_EQ(tree.children(0), (Some{1, 5, 8}));
  EXPECT_EQ(tree.children(1), (Some{2, 3, 4}));
  EXPECT_EQ(tree.children(8), (Some{9, 10}));
  EXPECT_EQ(tree.subtree(1), (PositionRange{1, 5}));
  EXPECT_EQ(tree.subtree(10), (PositionRange{10, 11}));
  EXPECT_EQ(tree.parent(7), 5U);
  EXPECT_EQ(tree.ancestors(10), (Some{8, 0}));
  EXPECT_FALSE(tree.parent(0));
  EXPECT_TRUE(tree.is_below(7, 5));
  EXPECT_FALSE(tree.is_below(5, 5));
  EXPECT_EQ(tree.depth(), 2U);
}

TEST(Tree, HoldsEveryMemberOnceBelowItsParent) {
  for (std::uint32_t members : {1U, 2U, 3U, 10U, 65U, 1000U, 4097U}) {
    for (std::uint32_t fanout : {0U, 2U, 3U, 16U, 64U}) {
      const Tree tree(members, fanout);
      std::set<Position> seen{0};
      for (Position p = 0; p < members; ++p) {
        const auto children = tree.children(p);
        EXPECT_LE(children.size(), std::max(fanout, Tree::kLeastFanout));
        Position next = p + 1;
        for (const Position child : children) {
          EXPECT_EQ(child, next);
          EXPECT_EQ(tree.parent(child), p);
          EXPECT_TRUE(seen.insert(child).second);
          next = tree.subtree(child).end;
        }
        EXPECT_EQ(next, tree.subtree(p).end);
        EXPECT_LE(tree.ancestors(p).size(), tree.depth());
      }
      EXPECT_EQ(seen.size(), members);
    }
  }
}

TEST(Tree, IsAsFlatAsItsFanoutAllows) {
  EXPECT_EQ(Tree(1, 16).depth(), 0U);
  EXPECT_EQ(Tree(17, 16).depth(), 1U);
  EXPECT_EQ(Tree(65, 16).depth(), 2U);
  EXPECT_EQ(Tree(16'385, 32).depth(), 3U);
  EXPECT_EQ(Tree(16'385, 128).depth(), 2U);
}

TEST(Tree, IsAsNarrowAsItsDepthAllows) {
  EXPECT_EQ(Tree::narrowest_fanout(1, 16), Tree::kLeastFanout);
  EXPECT_EQ(Tree::narrowest_fanout(17, 16), 16U);  // a star
  EXPECT_EQ(Tree::narrowest_fanout(18, 16), 4U);
  EXPECT_EQ(Tree::narrowest_fanout(65, 16), 8U);
  EXPECT_EQ(Tree::narrowest_fanout(273, 16), 16U);
  for (std::uint32_t members = 1; members < 3'000; members += 7) {
    const std::uint32_t fanout = Tree::narrowest_fanout(members, 16);
    EXPECT_LE(fanout, 16U);
    EXPECT_EQ(Tree(members, fanout).depth(), Tree(members, 16).depth()) << members;
  }
}

TEST(Tree, BypassesSilentMembers) {
  const Tree tree(11, 3);
  Positions silent;
  silent.add({5, 7});  // 5 and 6
  EXPECT_EQ(tree.children_past(0, silent), (Some{1, 7, 8}));
  silent.add({1, 11});
  EXPECT_TRUE(tree.children_past(0, silent).empty());
}

}  // namespace
}  // namespace score::gang
