#include "scored/head/stacks/wait_picture.hpp"

#include "proto/documents/stack_tree.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

using Stack = std::vector<proto::StackFrame>;

// Has two ranks; rank 0 waits in MPI_Recv, and rank 1, which polls, in MPI_Barrier.
struct Job {
  Stack first{{"main", "a.c:9"}, {"MPI_Recv", "libmpi.so"}, {"poll", "libc.so"}};
  Stack second{{"main", "a.c:12"}, {"PMPI_Barrier", "libmpi.so"}};
  const char* first_call = "MPI_Recv";
  std::uint32_t received = 0;
  std::string problem;

  [[nodiscard]] WaitPicture picture() const {
    proto::StackTree tree;
    tree.add(first, 0);
    tree.add(second, 1);
    if (!problem.empty()) tree.add_problem(1, problem);
    wire::Stacks stacks;
    *stacks.mutable_tree() = tree.to_wire(proto::StackTree::kMaxJobBytes);
    for (const auto* call : {first_call, "MPI_Barrier"}) {
      auto& state = *stacks.add_states();
      state.set_rank(static_cast<std::uint32_t>(stacks.states_size() - 1));
      state.set_waits(true);
      state.set_call(call);
      state.set_received(received);
    }
    stacks.mutable_states(1)->set_polls(true);
    return WaitPicture(stacks);
  }
};

TEST(WaitPicture, PlaceInsideCallDoesNotCount) {
  Job job;
  const WaitPicture before = job.picture();
  EXPECT_TRUE(before.is_still());
  job.first.back() = {"progress", "libmpi.so"};
  EXPECT_EQ(job.picture(), before);
}

TEST(WaitPicture, OtherCallerIsProgress) {
  Job job;
  const WaitPicture before = job.picture();
  job.second.front().place = "a.c:14";
  EXPECT_TRUE(job.picture().is_still());
  EXPECT_NE(job.picture(), before);
}

TEST(WaitPicture, ClassOfPmStandsForItsFunction) {
  Job job;
  job.first_call = "pm_wait";
  EXPECT_FALSE(job.picture().is_still());
  job.first = {
      {"main", "a.c:9"}, {"score::pm::Endpoint::wait(long)", "libpm.so"}, {"ppoll", "libc.so"}};
  EXPECT_TRUE(job.picture().is_still());
}

TEST(WaitPicture, RankOutsideItsCallIsNotStill) {
  Job job;
  job.second.back() = {"usleep", "libc.so"};
  EXPECT_FALSE(job.picture().is_still());
}

TEST(WaitPicture, MessageNotTakenIsInFlight) {
  Job job;
  job.received = 1;
  EXPECT_FALSE(job.picture().is_still());
}

TEST(WaitPicture, UnreadRankPassesUnlessItPolls) {
  Job job;
  job.second.clear();
  job.problem = "node1: no program";
  EXPECT_FALSE(job.picture().is_still());
  job.second = Job().second;
  EXPECT_TRUE(job.picture().is_still());
  job.first.clear();
  EXPECT_FALSE(job.picture().is_still()) << "it was read, and is not in its call";
}

TEST(WaitPicture, SilentNodeLeavesDoubt) {
  Job job;
  job.problem = "node1: did not answer in time";
  EXPECT_FALSE(job.picture().is_still());
}

}  // namespace
}  // namespace score::head
