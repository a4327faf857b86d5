// Tests that no user takes all places of the nodes.
#include "base/shares.hpp"
#include "tests/support/gang/cluster_bench.hpp"

#include <algorithm>

namespace score::gang {
namespace {

constexpr UserId kHostile{1001};
constexpr UserId kVictim{1002};
constexpr std::size_t kTried = 300;  // more than a node has places

class PlacesTest : public ::testing::Test {
 protected:
  explicit PlacesTest(Duration long_limit = 0s) : b_(config(long_limit)) {}

  static ClusterConfig config(Duration long_limit) {
    ClusterConfig config;
    config.max_slots = base::limits::kMaxSlots;
    config.long_limit = long_limit;
    return config;
  }

  JobId submit(UserId user, const base::ResourceRequest& request) {
    const JobId id{++b_.last_job};
    const auto actions = b_.cluster.submit(id, user, request, b_.now);
    EXPECT_TRUE(actions) << actions.error().message();
    if (actions) b_.take(*actions);
    return id;
  }

  // Submits many jobs of one user; returns how many of them run.
  std::size_t flood(UserId user, const base::ResourceRequest& request, std::size_t count = kTried) {
    std::vector<JobId> jobs;
    for (std::size_t i = 0; i < count; ++i) jobs.push_back(submit(user, request));
    b_.pass(1s);
    last_ = jobs.back();
    return static_cast<std::size_t>(
        std::ranges::count_if(jobs, [&](JobId job) { return b_.state(job) == JobState::Running; }));
  }

  // Submits a job; returns whether it runs.
  bool starts(UserId user, const base::ResourceRequest& request) {
    const JobId job = submit(user, request);
    b_.pass(100ms);
    return b_.state(job) == JobState::Running;
  }

  static base::ResourceRequest scout(std::uint32_t nodes) {
    base::ResourceRequest request = Bench::on_nodes(nodes);
    request.overlay = true;
    return request;
  }

  static base::ResourceRequest step(JobId allocation, bool overlaps) {
    base::ResourceRequest request;
    request.inside = allocation;
    request.tasks = 1;
    request.overlap = overlaps;
    return request;
  }

  JobId allocate(UserId user, std::uint32_t tasks) {
    base::ResourceRequest request = Bench::on_nodes(1, tasks);
    request.allocation = true;
    const JobId job = submit(user, request);
    b_.pass(100ms);
    return job;
  }

  Bench b_;
  JobId last_{0};  // of flood()
};

TEST_F(PlacesTest, ScoutCommandsOfOneUserLeaveRoom) {
  b_.add_nodes(2, 2);
  EXPECT_EQ(flood(kHostile, scout(2)), base::shares::kNodeScouts.per_user);
  EXPECT_EQ(b_.view(last_).reasons.back(),
            "the limit per user is 32 scout commands and overlapping steps on a node: "
            "node[00-01]");
  EXPECT_TRUE(starts(kVictim, scout(2)));
  EXPECT_TRUE(starts(kVictim, Bench::on_nodes(2)));
  EXPECT_TRUE(starts(kHostile, Bench::on_nodes(2)));
}

TEST_F(PlacesTest, OverlappingStepsOfOneUserLeaveRoom) {
  b_.add_nodes(1, 2);
  const JobId allocation = allocate(kHostile, 2);
  EXPECT_EQ(flood(kHostile, step(allocation, true), 200), base::shares::kNodeScouts.per_user);
  EXPECT_EQ(b_.view(last_).reasons.front(),
            "the limit per user is 32 scout commands and overlapping steps on a node: node00");
  EXPECT_TRUE(starts(kVictim, scout(1)));
  EXPECT_TRUE(starts(kVictim, Bench::on_nodes(1)));
}

TEST_F(PlacesTest, StepsOfOneUserLeaveRoom) {
  b_.add_nodes(1, 256);
  const JobId allocation = allocate(kHostile, 256);
  EXPECT_EQ(flood(kHostile, step(allocation, false), 200), base::shares::kNodeSteps.per_user);
  EXPECT_TRUE(starts(kVictim, scout(1)));
  EXPECT_TRUE(starts(kVictim, Bench::on_nodes(1)));
}

TEST_F(PlacesTest, SmallJobsOfOneUserLeaveRoom) {
  b_.add_nodes(1, 64);
  EXPECT_EQ(flood(kHostile, Bench::on_nodes(1)), base::shares::kNodeJobs.per_user);
  EXPECT_TRUE(starts(kVictim, Bench::on_nodes(1)));
}

// Rows are opened as jobs need them, and each of these needs one.
TEST_F(PlacesTest, RowsOfOneUserLeaveRoom) {
  b_.add_nodes(2, 1);
  EXPECT_EQ(flood(kHostile, Bench::on_nodes(2), 70), base::shares::kRows.per_user);
  EXPECT_EQ(b_.view(last_).reasons.front(), "the limit per user is 56 of 64 slots");
  EXPECT_TRUE(starts(kVictim, Bench::on_nodes(1)));
  b_.cancel(JobId{1});
  b_.pass(100ms);
  EXPECT_EQ(b_.state(JobId{57}), JobState::Running) << "the first that waits";
}

class HeldRowsTest : public PlacesTest {
 protected:
  HeldRowsTest() : PlacesTest(ClusterConfig::kDefaultLongLimit) {}
};

// Jobs without a time limit may hold fewer rows, and one user fewer of those.
TEST_F(HeldRowsTest, HeldRowsOfOneUserLeaveRoom) {
  b_.add_nodes(1, 1);
  EXPECT_EQ(flood(kHostile, Bench::on_nodes(1), 70), base::shares::rows_of_user(56));
  EXPECT_EQ(b_.view(last_).reasons.front(),
            "the limit per user is 49 of 64 slots for jobs with no time limit or one over 5m");
  EXPECT_TRUE(starts(kVictim, Bench::on_nodes(1)));
  base::ResourceRequest brief = Bench::on_nodes(1);
  brief.scheduled_limit = 1s;
  EXPECT_EQ(flood(kHostile, brief, 20), 7U);
  EXPECT_TRUE(starts(kVictim, brief));
}

TEST_F(PlacesTest, ScoutCommandsOfAllLeaveRoomForGangs) {
  b_.add_nodes(1, 2);
  std::size_t running = 0;
  for (std::uint32_t user = 2'000; user < 2'010; ++user) {
    running += flood(UserId{user}, scout(1), 40);
  }
  EXPECT_EQ(running, base::shares::kNodeScouts.places);
  EXPECT_FALSE(starts(kVictim, scout(1)));
  EXPECT_EQ(b_.view(JobId{b_.last_job}).reasons.back(),
            "the limit is 96 scout commands and overlapping steps on a node: node00");
  EXPECT_TRUE(starts(kVictim, Bench::on_nodes(1)));
}

// A pass over the queue skips jobs like one that failed, but only of the user whose share is full.
TEST_F(PlacesTest, QueuePassesUserWhoseShareIsFull) {
  b_.add_nodes(1, 64);
  base::ResourceRequest held = Bench::on_nodes(1);
  flood(kHostile, held);
  held.held = true;
  held.priority = -1;
  const JobId victim = submit(kVictim, held);
  EXPECT_EQ(b_.state(victim), JobState::Pending);
  b_.expect_ok(b_.cluster.release(victim, b_.now));
  b_.pass(100ms);
  EXPECT_EQ(b_.state(victim), JobState::Running);
}

TEST_F(PlacesTest, EndedJobGivesItsPlaceBack) {
  b_.add_nodes(1, 2);
  flood(kHostile, scout(1), 33);
  EXPECT_EQ(b_.state(last_), JobState::Pending);
  b_.cancel(JobId{1});
  b_.pass(100ms);
  EXPECT_EQ(b_.state(last_), JobState::Running);
}

}  // namespace
}  // namespace score::gang
