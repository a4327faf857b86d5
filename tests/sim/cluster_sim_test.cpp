// These tests run fixed seeds of the simulated cluster. scsim_cluster --seed N runs one by hand.
// Suites and seeds whose names begin with Long belong to the long tier.
#include "gang/job/job_state.hpp"
#include "tests/sim/world.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace score::sim {
namespace {

constexpr std::uint64_t kSeedsATest = 10;

Seen add(Seen a, const Seen& b) {
  for (const auto& [state, count] : b.ends) a.ends[state] += count;
  a.gangs_compared += b.gangs_compared;
  a.cores_compared += b.cores_compared;
  a.units_compared += b.units_compared;
  a.clocks_compared += b.clocks_compared;
  a.head_restarts += b.head_restarts;
  a.node_crashes += b.node_crashes;
  a.daemon_restarts += b.daemon_restarts;
  a.idle_left += b.idle_left;
  a.idle_returned += b.idle_returned;
  a.early_yields += b.early_yields;
  a.deadlocks_killed += b.deadlocks_killed;
  a.lost_reports += b.lost_reports;
  a.fake_wakes += b.fake_wakes;
  a.launches_compared += b.launches_compared;
  a.hangs_ended += b.hangs_ended;
  a.urgent_beyond += b.urgent_beyond;
  a.kept_rows_compared += b.kept_rows_compared;
  a.reserved_compared += b.reserved_compared;
  a.left_reserved += b.left_reserved;
  a.met += b.met;
  a.unmet += b.unmet;
  return a;
}

struct Seeds {
  std::uint64_t first = 1, last = kSeedsATest;
};

// Runs one world per seed. A failure prints the command that reproduces it.
void run_seeds(Options options, const char* word, Seen& all, Seeds seeds = {}) {
  options.steps = 6000;
  for (options.seed = seeds.first; options.seed <= seeds.last; ++options.seed) {
    ASSERT_NO_THROW(all = add(all, World(options).run()))
        << "scsim_cluster " << word << " --seed " << options.seed << " --nodes " << options.nodes
        << " --steps " << options.steps;
  }
}

class ClusterSim : public testing::TestWithParam<std::uint64_t> {};

TEST_P(ClusterSim, InvariantsHoldAndEveryJobEndsOnce) {
  Seen all;
  for (std::uint64_t seed = GetParam(); seed < GetParam() + kSeedsATest; ++seed) {
    Options options;
    options.seed = seed;
    options.nodes = static_cast<std::uint32_t>(4 + seed % 13);
    options.steps = 6000;
    ASSERT_NO_THROW(all = add(all, World(options).run()))
        << "scsim_cluster --seed " << seed << " --nodes " << options.nodes << " --steps "
        << options.steps;
  }
  // A run that has observed nothing is no proof.
  for (const JobState state : {JobState::Completed, JobState::Failed, JobState::Cancelled,
                               JobState::TimedOut, JobState::NodeFailed, JobState::LaunchFailed}) {
    EXPECT_GT(all.ends[state], 0U) << gang::to_string(state);
  }
  EXPECT_GT(all.gangs_compared, 500U);
  EXPECT_GT(all.cores_compared, 5000U);
  EXPECT_GT(all.units_compared, 1000U);
  EXPECT_GT(all.clocks_compared, 500U);
  EXPECT_GT(all.head_restarts, 5U);
  EXPECT_GT(all.node_crashes, 5U);
  EXPECT_GT(all.daemon_restarts, 5U);
  EXPECT_GT(all.idle_left, 5U);
  EXPECT_GT(all.idle_returned, 5U);
  EXPECT_GT(all.early_yields, 0U);
  EXPECT_GT(all.deadlocks_killed, 0U);
  EXPECT_GT(all.lost_reports, 20U);
  EXPECT_GT(all.fake_wakes, 0U);
  EXPECT_GT(all.urgent_beyond, 0U);
  EXPECT_GT(all.kept_rows_compared, 100U);
  EXPECT_GT(all.reserved_compared, 100U);
  EXPECT_GT(all.left_reserved, 0U);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ClusterSim, testing::Values(1, 11));
INSTANTIATE_TEST_SUITE_P(LongSeeds, ClusterSim, testing::Values(21, 31, 41));

// Checks all invariants, faults and seeds under a policy other than the default.
void hold_under(gang::Placement placement, Seeds seeds, unsigned least_gangs) {
  Options options;
  options.placement = placement;
  const std::string word = fmt::format("--placement {}", static_cast<int>(placement));
  Seen all;
  ASSERT_NO_FATAL_FAILURE(run_seeds(options, word.c_str(), all, seeds));
  EXPECT_GT(all.ends[JobState::Completed], least_gangs / 5);
  const bool takes_turns = placement <= gang::Placement::Slurm;  // batch jobs have one row
  if (takes_turns) {
    EXPECT_GT(all.gangs_compared, least_gangs);
  }
  EXPECT_GT(all.cores_compared, 10 * least_gangs);
  EXPECT_GT(all.head_restarts, 0U);
  options.barriers = true;
  ASSERT_NO_FATAL_FAILURE(run_seeds(options, (word + " --barriers").c_str(), all, seeds));
}

class ClusterSimPolicies : public testing::TestWithParam<gang::Placement> {};

TEST_P(ClusterSimPolicies, InvariantsHoldAndEveryJobEndsOnce) {
  hold_under(GetParam(), {.first = 1, .last = 3}, 30);
}

class LongClusterSimPolicies : public testing::TestWithParam<gang::Placement> {};

TEST_P(LongClusterSimPolicies, InvariantsHoldAndEveryJobEndsOnce) {
  hold_under(GetParam(), {.first = 1, .last = 10}, 100);
}

const auto kOtherPolicies =
    testing::Values(gang::Placement::Dqt, gang::Placement::Slurm, gang::Placement::Fcfs,
                    gang::Placement::Easy, gang::Placement::Conservative);
INSTANTIATE_TEST_SUITE_P(Policies, ClusterSimPolicies, kOtherPolicies);
INSTANTIATE_TEST_SUITE_P(LongPolicies, LongClusterSimPolicies, kOtherPolicies);

TEST(ClusterSim, GangsSwitchTogetherWithoutFaults) {
  Options options;
  options.seed = 7;
  options.faults = false;
  options.steps = 15000;
  Seen seen;
  ASSERT_NO_THROW(seen = World(options).run());
  EXPECT_GT(seen.gangs_compared, 200U);
  EXPECT_LT(seen.worst_gang_skew, 1ms);
  EXPECT_EQ(seen.ends[JobState::NodeFailed], 0U);
  EXPECT_GT(seen.idle_left, 0U);
  EXPECT_GT(seen.idle_returned, 0U);
  EXPECT_GT(seen.idle_compared, 500U);
  EXPECT_GT(seen.high_compared, 20U);
}

TEST(ClusterSim, GangsMeetInBarrierMode) {
  Options options;
  options.seed = 7;
  options.faults = false;
  options.slow_messages = false;  // a message of 20 ms costs a gang a slice of 10 ms
  options.barriers = true;
  options.steps = 15000;
  Seen seen;
  ASSERT_NO_THROW(seen = World(options).run());
  EXPECT_GT(seen.met, 500U);
  EXPECT_GT(seen.met, 10 * seen.unmet);
  EXPECT_GT(seen.cores_compared, 1000U);
}

TEST(ClusterSim, FaultsInBarrierModeLeaveNoJobWaiting) {
  Options options;
  options.barriers = true;
  Seen all;
  ASSERT_NO_FATAL_FAILURE(run_seeds(options, "--barriers", all));
  EXPECT_GT(all.met, 500U);
  EXPECT_GT(all.unmet, 0U) << "no node was late";
  EXPECT_GT(all.head_restarts, 0U);
  EXPECT_GT(all.ends[JobState::Completed], 0U);
}

// A job that hangs is ended, and a job that does not begin on all nodes is ended at once. So no
// accepted job waits for ever.
TEST(ClusterSim, AcceptedJobBeginsOrEndsOnHangingNodes) {
  Options calm;
  calm.seed = 7;
  calm.faults = false;
  calm.hangs = true;
  calm.steps = 15000;
  Seen seen;
  ASSERT_NO_THROW(seen = World(calm).run());
  EXPECT_GT(seen.hangs_ended, 0U);
  EXPECT_GT(seen.launches_compared, 500U);
  Options options;
  options.hangs = true;
  Seen all;
  ASSERT_NO_FATAL_FAILURE(run_seeds(options, "--hangs", all));
  EXPECT_GT(all.hangs_ended, 5U);
  EXPECT_GT(all.launches_compared, 500U);
  EXPECT_GT(all.ends[JobState::Completed], 0U);
}

// This seed fails if a new cycle starts before all nodes have left the old one.
TEST(ClusterSim, LongRunHoldsItsInvariants) {
  Options options;
  options.seed = 7;
  Seen seen;
  ASSERT_NO_THROW(seen = World(options).run());
  EXPECT_GT(seen.gangs_compared, 300U);
}

// Wide jobs share thousands of nodes, sleep on all of them, leave the timetable to other jobs and
// return.
TEST(LongClusterSim, FourThousandNodesWhoseJobsOverlapAndSleep) {
  Options options;
  options.nodes = 4096;
  options.seed = 3;
  options.faults = false;
  options.crowded = true;
  options.user_pause = 400ms;
  options.steps = 3'000'000;
  Seen seen;
  ASSERT_NO_THROW(seen = World(options).run());
  EXPECT_GT(seen.ends[JobState::Completed], 5U);
  EXPECT_EQ(seen.ends[JobState::NodeFailed], 0U);
  EXPECT_GT(seen.gangs_compared, 50U);
  EXPECT_GT(seen.idle_left, 5U);
  EXPECT_GT(seen.idle_returned, 5U);
  EXPECT_GT(seen.idle_compared, 100U);
}

TEST(LongClusterSim, FourThousandNodes) {
  Options options;
  options.nodes = 4096;
  options.seed = 2;
  options.steps = 200'000;
  Seen seen;
  ASSERT_NO_THROW(seen = World(options).run());
  EXPECT_GT(seen.ends[JobState::Completed], 0U);
}

}  // namespace
}  // namespace score::sim
