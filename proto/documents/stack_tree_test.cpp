#include "proto/documents/stack_tree.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::proto {
namespace {

using Stack = std::vector<StackFrame>;

const Stack kInRecv{{"main", "a.c:9"}, {"solve", "a.c:3"}, {"MPI_Recv", "libmpi.so"}};
const Stack kInSolve{{"main", "a.c:9"}, {"solve", "a.c:3"}};

std::string frame_with(const wire::StackTree& tree, const std::string& function) {
  for (const auto& frame : tree.frames()) {
    if (frame.function() == function) return frame.ranks();
  }
  return "none";
}

TEST(StackTree, EqualStacksAreMerged) {
  StackTree tree;
  for (const std::uint32_t rank : {0U, 1U, 2U, 7U}) tree.add(kInRecv, rank);
  tree.add(kInSolve, 5);
  tree.add({}, 6);
  const auto wire = tree.to_wire(StackTree::kMaxNodeBytes);
  ASSERT_EQ(wire.frames_size(), 3);
  EXPECT_EQ(frame_with(wire, "MPI_Recv"), "0-2,7");
  EXPECT_EQ(wire.frames(2).threads(), 4U);
  EXPECT_EQ(frame_with(wire, "solve"), "5");
  EXPECT_EQ(frame_with(wire, "main"), "");
}

TEST(StackTree, TreesOfNodesAreMerged) {
  StackTree first, second, all;
  first.add(kInRecv, 0);
  first.add_problem(1, "it has ended");
  second.add(kInSolve, 3);
  second.add(kInRecv, 2);
  ASSERT_TRUE(all.merge(first.to_wire(StackTree::kMaxNodeBytes), 4, 4));
  ASSERT_TRUE(all.merge(second.to_wire(StackTree::kMaxNodeBytes), 4, 4));
  const auto wire = all.to_wire(StackTree::kMaxJobBytes);
  EXPECT_EQ(wire.frames_size(), 3);
  EXPECT_EQ(frame_with(wire, "MPI_Recv"), "0,2");
  ASSERT_EQ(wire.problems_size(), 1);
  EXPECT_EQ(wire.problems(0).ranks(), "1");
}

TEST(StackTree, ForeignRanksAndOrderAreRefused) {
  StackTree tree;
  wire::StackTree other;
  other.add_frames()->set_ranks("4");
  EXPECT_FALSE(tree.merge(other, 4, 4));
  other.mutable_frames(0)->set_ranks("0-");
  EXPECT_FALSE(tree.merge(other, 4, 4));
  other.mutable_frames(0)->set_ranks("3");
  other.mutable_frames(0)->set_parent(1);
  EXPECT_FALSE(tree.merge(other, 4, 4)) << "a frame that calls itself";
  other.mutable_frames(0)->set_parent(0);
  EXPECT_TRUE(tree.merge(other, 4, 4));
  for (std::uint32_t depth = 1; depth <= StackTree::kMaxDepth; ++depth)
    other.add_frames()->set_parent(depth);
  EXPECT_FALSE(tree.merge(other, 4, 4)) << "too deep";
}

// Each of these lists is short as text and would cost a million steps.
TEST(StackTree, LongListsAreRefusedBeforeTheyAreMade) {
  constexpr std::uint32_t kTasks = 1U << 20;
  wire::StackTree other;
  for (int i = 0; i < 4'000; ++i) other.add_frames()->set_ranks("0-1048575");
  EXPECT_FALSE(StackTree().merge(other, kTasks, 8));
  other.clear_frames();
  for (int i = 0; i < 3; ++i) other.add_frames()->set_ranks("0-1023");
  EXPECT_TRUE(StackTree().merge(other, kTasks, 12));
  EXPECT_FALSE(StackTree().merge(other, kTasks, 11));
}

TEST(StackTree, SizeIsBounded) {
  StackTree tree;
  for (std::uint32_t i = 0; i < StackTree::kMaxFrames + 10; ++i) {
    tree.add(Stack{{std::string(1'000, 'f'), std::to_string(i)}}, i);
  }
  const auto wire = tree.to_wire(100'000);
  EXPECT_LE(wire.ByteSizeLong(), 110'000U);
  EXPECT_EQ(wire.frames_size() + wire.dropped(), StackTree::kMaxFrames + 10);
  EXPECT_EQ(wire.frames(0).function().size(), StackTree::kMaxTextBytes);
}

TEST(StackTree, DeepStackIsCut) {
  StackTree tree;
  tree.add(Stack(1'000, {"recurse", "a.c:1"}), 0);
  EXPECT_EQ(tree.to_wire(StackTree::kMaxNodeBytes).frames_size(), int{StackTree::kMaxDepth});
}

TEST(StackTree, HostileBytesAreRefusedOrBounded) {
  std::mt19937 random(1);
  StackTree good;
  good.add(kInRecv, 0);
  good.add(kInSolve, 1);
  const std::string bytes = good.to_wire(StackTree::kMaxNodeBytes).SerializeAsString();
  for (int round = 0; round < 5'000; ++round) {
    std::string bad = bytes;
    for (int i = 0; i < 4; ++i) bad[random() % bad.size()] = static_cast<char>(random());
    wire::StackTree other;
    if (!other.ParseFromString(bad)) continue;
    StackTree tree;
    if (!tree.merge(other, 2, 2)) continue;
    EXPECT_TRUE(StackTree().merge(tree.to_wire(StackTree::kMaxNodeBytes), 2, 2));
  }
}

TEST(StackTree, ListsOfRanksAreRead) {
  EXPECT_EQ(rank_list({0, 1, 2, 7, 9, 10}), "0-2,7,9-10");
  EXPECT_EQ(*parse_ranks("9-10,0-2,7", 64), (std::set<std::uint32_t>{0, 1, 2, 7, 9, 10}));
  EXPECT_FALSE(parse_ranks("64", 64));
  EXPECT_FALSE(parse_ranks("x", 64));
}

}  // namespace
}  // namespace score::proto
