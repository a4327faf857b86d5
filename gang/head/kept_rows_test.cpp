// Some rows are kept for short jobs: long jobs, and jobs without a limit, never hold the last ones.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

using Queue = base::Queue;

constexpr Duration kNone{0};
constexpr Duration kShort = 1s;
constexpr Duration kLong = 10min;

struct KeptRowsBench : Bench {
  explicit KeptRowsBench(Placement placement = Placement::Matrix, std::uint32_t slots = 8)
      : Bench(with_long(placement, slots)) {
    add_nodes(2);
  }

  static ClusterConfig with_long(Placement placement, std::uint32_t slots) {
    ClusterConfig config;
    config.placement = placement;
    config.max_slots = slots;
    config.long_limit = ClusterConfig::kDefaultLongLimit;
    config.long_shared = 1h;
    return config;
  }

  static base::ResourceRequest request(Duration limit, std::uint32_t nodes = 2) {
    base::ResourceRequest request = on_nodes(nodes);
    request.scheduled_limit = limit;
    return request;
  }

  JobId add(Duration limit, std::uint32_t nodes = 2) { return submit(request(limit, nodes)); }

  bool starts(Duration limit, std::uint32_t nodes = 2) {
    return state(add(limit, nodes)) == JobState::Running;
  }

  std::size_t start_all(std::size_t count, Duration limit) {
    std::size_t started = 0;
    for (std::size_t i = 0; i < count; ++i) started += starts(limit) ? 1 : 0;
    return started;
  }

  [[nodiscard]] std::string first_reason(JobId job) const { return view(job).reasons.at(0); }
};

struct KeptRows : testing::TestWithParam<Placement> {
  KeptRowsBench b{GetParam()};
};

TEST_P(KeptRows, ShortJobStartsDespiteNineLongOnes) {
  EXPECT_EQ(b.start_all(9, kLong), 6U);
  EXPECT_TRUE(b.starts(kShort, 1));
  EXPECT_TRUE(b.starts(kShort)) << "the first is in a row of its own";
  EXPECT_FALSE(b.starts(kLong));
}

TEST_P(KeptRows, JobWithoutLimitStartsDespiteNineLongOnes) {
  EXPECT_EQ(b.start_all(9, kLong), 6U);
  EXPECT_TRUE(b.starts(kNone));
  EXPECT_FALSE(b.starts(kNone)) << "the last row is for short jobs";
  EXPECT_TRUE(b.starts(kShort));
}

TEST_P(KeptRows, JobsWithoutLimitLeaveOneRow) {
  EXPECT_EQ(b.start_all(9, kNone), 7U);
  EXPECT_FALSE(b.starts(kLong));
  EXPECT_TRUE(b.starts(kShort));
}

TEST_P(KeptRows, ShortJobsMayUseAllRows) {
  EXPECT_EQ(b.start_all(9, kShort), 8U);
}

TEST_P(KeptRows, ShortJobsShareTheLastRow) {
  b.start_all(9, kNone);
  EXPECT_TRUE(b.starts(kShort, 1));
  EXPECT_TRUE(b.starts(kShort, 1)) << "jobs that wait are promised no room there";
  EXPECT_FALSE(b.starts(kNone, 1));
}

TEST_P(KeptRows, JobsOfHigherQueuesMayHoldAllRows) {
  b.start_all(9, kNone);
  auto high = KeptRowsBench::request(kNone);
  high.queue = Queue::High;
  EXPECT_EQ(b.state(b.submit(high)), JobState::Running);
  auto urgent = KeptRowsBench::request(kLong);
  urgent.queue = Queue::Urgent;
  EXPECT_EQ(b.state(b.submit(urgent)), JobState::Running);
}

TEST_P(KeptRows, ExclusiveJobWaitsOnlyForItsNodes) {
  auto alone = KeptRowsBench::request(kLong, 1);
  alone.queue = Queue::Exclusive;
  EXPECT_EQ(b.state(b.submit(alone)), JobState::Running);
  EXPECT_EQ(b.state(b.submit(alone)), JobState::Running) << "the other node";
}

// A short job is behind one of the same shape in the queue that may not take the free room.
TEST_P(KeptRows, FreedRowGoesToWaitingShortJob) {
  b.start_all(7, kNone);
  const JobId first = b.add(kShort);
  const JobId open = b.add(kNone);
  const JobId second = b.add(kShort);
  ASSERT_EQ(b.state(second), JobState::Pending);
  b.finish(first);
  EXPECT_EQ(b.state(second), JobState::Running);
  EXPECT_EQ(b.state(open), JobState::Pending);
}

TEST_P(KeptRows, FreedRowGoesToFirstInQueue) {
  std::vector<JobId> running;
  for (int i = 0; i < 7; ++i) running.push_back(b.add(kNone));
  const JobId first = b.add(kLong);
  const JobId second = b.add(kNone);
  b.finish(running[3]);
  EXPECT_EQ(b.state(first), JobState::Running) << "jobs without a limit do not starve it";
  b.finish(running[4]);
  EXPECT_EQ(b.state(second), JobState::Running);
}

INSTANTIATE_TEST_SUITE_P(Policies, KeptRows, testing::Values(Placement::Matrix, Placement::Dqt));

TEST(KeptRowsOfSlots, AreAQuarterAndAnEighth) {
  struct {
    std::uint32_t slots;
    std::size_t of_long, open;  // numbers of running jobs
  } const cases[] = {{1, 1, 1}, {2, 1, 2}, {3, 2, 3},   {4, 3, 4},
                     {5, 3, 4}, {8, 6, 7}, {16, 12, 14}};

  for (const auto& c : cases) {
    KeptRowsBench with_long(Placement::Matrix, c.slots);
    EXPECT_EQ(with_long.start_all(c.slots + 1, kLong), c.of_long) << c.slots;
    EXPECT_EQ(with_long.starts(kShort), c.slots > 1) << c.slots;
    KeptRowsBench with_open(Placement::Matrix, c.slots);
    EXPECT_EQ(with_open.start_all(c.slots + 1, kNone), c.open) << c.slots;
  }
}

TEST(KeptRowsOfSlots, AreNoneWithoutLongLimit) {
  ClusterConfig config;
  config.long_limit = 0s;
  Bench b(config);
  b.add_nodes(2);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(b.state(b.submit(KeptRowsBench::request(kLong))), JobState::Running);
  }
}

TEST(KeptRowsOfSlots, AreNamedInWaitReasons) {
  KeptRowsBench b;
  b.start_all(6, kLong);
  EXPECT_EQ(b.first_reason(b.add(kLong)),
            "jobs with a time limit over 5m hold 6 of 8 slots, which is the limit for such jobs");
  b.add(kNone);
  EXPECT_EQ(
      b.first_reason(b.add(kNone)),
      "jobs with no time limit or one over 5m hold 7 of 8 slots; the rest is kept for jobs with "
      "--time of at most 5m");
  b.add(kShort);
  EXPECT_EQ(b.first_reason(b.add(kShort)), "too few free cores in each of the 8 slots");
}

// Running jobs keep their rows when the number of slots is reduced.
TEST(KeptRowsOfSlots, AreGivenBackAfterSlotsWereReduced) {
  KeptRowsBench b;
  std::vector<JobId> jobs;
  for (int i = 0; i < 6; ++i) jobs.push_back(b.add(kLong));
  b.expect_ok(b.cluster.set(base::Setting::Slots, 4, b.now));
  const JobId brief = b.add(kShort);
  EXPECT_EQ(b.state(brief), JobState::Pending);
  for (std::size_t i = 0; i < 3; ++i) b.finish(jobs[i]);
  EXPECT_EQ(b.state(brief), JobState::Running);
  EXPECT_FALSE(b.starts(kLong)) << "three of four rows are held";
}

}  // namespace
}  // namespace score::gang
