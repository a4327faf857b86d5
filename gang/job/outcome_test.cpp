#include "gang/job/outcome.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using base::JobState;
using base::Rank;
using base::TimePoint;
using namespace std::chrono_literals;
using Reasons = std::vector<std::string>;
using Recorded = JobOutcome::Recorded;

JobOutcome of_two_members() {
  JobOutcome outcome;
  outcome.expect({0, 1});
  return outcome;
}

TEST(JobOutcome, ExitCountsOnceAndOnlyFromItsMember) {
  JobOutcome outcome = of_two_members();
  EXPECT_EQ(outcome.record(0, {Rank{1}, 3, 0}), Recorded::Impossible) << "of the other member";
  EXPECT_EQ(outcome.record(1, {Rank{1}, 3, 0}), Recorded::New);
  EXPECT_EQ(outcome.record(1, {Rank{1}, 4, 0}), Recorded::Known);
  EXPECT_EQ(outcome.record(1, {Rank{7}, 0, 0}), Recorded::Impossible);
  EXPECT_EQ(outcome.record(0, {Rank{0}, 256, 0}), Recorded::Impossible);
  EXPECT_EQ(outcome.record(0, {Rank{0}, 0, 65}), Recorded::Impossible);
  EXPECT_EQ(outcome.exit_code(), 3);
  EXPECT_EQ(outcome.exits().size(), 1U);
  EXPECT_TRUE(outcome.has_all_exits_of(1));
  EXPECT_FALSE(outcome.has_all_exits_of(0));
}

TEST(JobOutcome, JobHasHighestExitCodeOfItsTasks) {
  JobOutcome outcome = of_two_members();
  outcome.record(0, {Rank{0}, 7, 0});
  outcome.record(1, {Rank{1}, 0, 11});
  EXPECT_EQ(outcome.exit_code(), 139);
  const auto failed = outcome.failed();
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->exit.rank, Rank{0});
  EXPECT_EQ(failed->count, 2U);
}

TEST(JobOutcome, TasksKilledAfterDecisionDoNotCount) {
  JobOutcome outcome = of_two_members();
  outcome.decide({"rank 1 failed", 3});
  outcome.record(0, {Rank{0}, 0, 9});
  EXPECT_EQ(outcome.exit_code(), 3);
  outcome.record(1, {Rank{1}, 5, 0});
  EXPECT_EQ(outcome.exit_code(), 5) << "it exited by itself";
}

TEST(JobOutcome, EarlierFailureExplainsEndBetter) {
  JobOutcome outcome = of_two_members();
  outcome.decide({"second", 14, TimePoint(2s)});
  outcome.explain({"third", 14, TimePoint(3s)});
  EXPECT_EQ(outcome.reasons(), Reasons{"second"});
  outcome.explain({"first", 3, TimePoint(1s)});
  EXPECT_EQ(outcome.reasons(), Reasons{"first"});
  EXPECT_EQ(outcome.exit_code(), 14);
}

TEST(JobOutcome, VanishedTaskExplainsAbortsOfItsPeers) {
  JobOutcome outcome = of_two_members();
  outcome.decide({"aborted", 14, TimePoint(1s)});
  outcome.explain({"vanished", 137, TimePoint(2s), true});
  outcome.explain({"aborted first", 14, TimePoint(500ms)});
  EXPECT_EQ(outcome.reasons(), Reasons{"vanished"});
}

TEST(JobOutcome, NoFailureExplainsARequestedEnd) {
  JobOutcome outcome = of_two_members();
  outcome.decide(JobState::Cancelled, "cancelled", 130);
  outcome.explain({"failed", 3, TimePoint(1s), true});
  EXPECT_EQ(outcome.reasons(), Reasons{"cancelled"});
  EXPECT_EQ(outcome.close(), JobState::Cancelled);
  EXPECT_FALSE(outcome.ending());
}

TEST(JobOutcome, ExhaustedMemoryDecidesTheEnd) {
  JobOutcome well = of_two_members();
  EXPECT_FALSE(well.blame_memory("out of memory"));
  well.decide_by_exits("");
  EXPECT_EQ(well.ending(), JobState::OutOfMemory);
  EXPECT_EQ(well.exit_code(), 137);
  JobOutcome fails = of_two_members();
  fails.blame_memory("out of memory");
  fails.decide({"rank 0 exited with 3", 3});
  EXPECT_EQ(fails.ending(), JobState::OutOfMemory);
  EXPECT_EQ(fails.reasons(), Reasons{"out of memory"});
  EXPECT_EQ(fails.exit_code(), 3);
}

TEST(JobOutcome, MemoryExplainsFailureButNotCancel) {
  JobOutcome failed = of_two_members();
  failed.decide({"rank 1 aborted", 14, TimePoint(1s)});
  EXPECT_TRUE(failed.blame_memory("out of memory"));
  EXPECT_EQ(failed.ending(), JobState::OutOfMemory);
  EXPECT_EQ(failed.exit_code(), 14);
  JobOutcome cancelled = of_two_members();
  cancelled.decide(JobState::Cancelled, "cancelled", 130);
  EXPECT_FALSE(cancelled.blame_memory("out of memory"));
  EXPECT_EQ(cancelled.reasons(), Reasons{"cancelled"});
}

TEST(JobOutcome, CancelledRequeueNamesBothReasons) {
  JobOutcome outcome = of_two_members();
  outcome.decide(JobState::NodeFailed, "node lost", 125);
  outcome.cancel_requeue(JobState::Cancelled, "cancelled", 130);
  EXPECT_EQ(outcome.reasons(), (Reasons{"cancelled", "node lost"}));
  EXPECT_EQ(outcome.ending(), JobState::Cancelled);
}

}  // namespace
}  // namespace score::gang
