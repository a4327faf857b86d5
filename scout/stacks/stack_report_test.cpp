#include "scout/stacks/stack_report.hpp"

#include "proto/documents/stack_tree.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

using Stack = std::vector<proto::StackFrame>;

// 64 ranks wait for rank 13: the library has them in two places, and one computes.
wire::Stacks of_a_late_rank() {
  proto::StackTree tree;
  for (std::uint32_t rank = 0; rank < 64; ++rank) {
    Stack stack{{"main", "a.c:9"}};
    if (rank == 13) {
      stack.push_back({"compute\x1b[31m", "a.c:31"});
    } else {
      stack.push_back({"MPI_Barrier", "libmpi.so"});
      stack.push_back({rank % 2 == 0 ? "poll" : "progress", "libmpi.so"});
    }
    tree.add(stack, rank);
  }
  tree.add_problem(63, "node3: did not answer in time");
  wire::Stacks stacks;
  *stacks.mutable_tree() = tree.to_wire(proto::StackTree::kMaxJobBytes);
  stacks.set_tasks(64);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    auto& state = *stacks.add_states();
    state.set_rank(rank);
    state.set_waits(true);
    state.set_call("MPI_Recv");
    state.set_from(14);
    state.set_message_tag(8);
  }
  stacks.mutable_states(2)->set_received(2);
  stacks.mutable_states(2)->set_received_from("5,6");
  return stacks;
}

TEST(StackReport, RareGroupIsFirst) {
  const auto groups = groups_of(of_a_late_rank().tree());
  ASSERT_EQ(groups.size(), 2U) << "places within the MPI library are one";
  EXPECT_EQ(groups[0].ranks, std::set<std::uint32_t>{13});
  EXPECT_TRUE(groups[0].place.ends_with("(a.c:31) < main (a.c:9)")) << groups[0].place;
  EXPECT_EQ(groups[1].place, "MPI_Barrier (libmpi.so) < main (a.c:9)");
  EXPECT_EQ(groups[1].ranks.size(), 63U);
}

TEST(StackReport, TextNamesRanksMessagesAndProblems) {
  const std::string text = stacks_text(of_a_late_rank(), "7");
  EXPECT_NE(text.find("1 rank: 13  compute"), std::string::npos) << text;
  EXPECT_NE(text.find("3 ranks: 0-2  waits in MPI_Recv from rank 13, tag 7"), std::string::npos)
      << text;
  EXPECT_NE(text.find("1 rank: 2  has not taken 2 messages of ranks 5,6"), std::string::npos);
  EXPECT_NE(text.find("Not read: 1 rank: 63: node3: did not answer in time"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << "texts of programs are escaped";
}

TEST(StackReport, StraightStackIsNotIndented) {
  proto::StackTree tree;
  tree.add(Stack{{"main", ""}, {"a", ""}, {"b", ""}}, 0);
  wire::Stacks stacks;
  *stacks.mutable_tree() = tree.to_wire(proto::StackTree::kMaxJobBytes);
  const std::string text = stacks_text(stacks, "7");
  EXPECT_NE(text.find("[1 rank: 0]\n  main\n  a\n  b\n"), std::string::npos) << text;
}

TEST(StackReport, JsonHasTheSame) {
  const std::string json = stacks_json(of_a_late_rank(), 7);
  EXPECT_NE(json.find("\"schema\": \"scored.stacks/1\""), std::string::npos) << json.substr(0, 200);
  EXPECT_NE(json.find("\"ranks\": \"13\""), std::string::npos);
  EXPECT_NE(json.find("\"from\": 13"), std::string::npos);
}

TEST(StackReport, ImpossibleTreeIsShown) {
  wire::StackTree tree;
  tree.add_frames()->set_parent(2);
  tree.add_frames()->set_parent(9);
  tree.mutable_frames(1)->set_ranks("1");
  EXPECT_EQ(groups_of(tree).size(), 1U);
}

}  // namespace
}  // namespace score::scout
