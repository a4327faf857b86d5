// A job's first scheduled time runs with at least half of the time of its cores, shared with other
// young jobs; the others keep at least a quarter.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

constexpr Duration kYoung = 2s;

struct YoungBench : Bench {
  explicit YoungBench(std::uint32_t nodes = 2) : Bench(with_young()) { add_nodes(nodes); }

  static ClusterConfig with_young() {
    ClusterConfig config;
    config.young_time = kYoung;
    set_setting(config, base::Setting::Slots, base::rule_of(base::Setting::Slots).initial);
    config.long_limit = ClusterConfig::kDefaultLongLimit;
    config.long_shared = 1h;
    config.long_early = 1h;
    return config;
  }

  JobId add(std::uint32_t nodes = 2, std::uint32_t weight = base::limits::kDefaultWeight) {
    auto request = on_nodes(nodes);
    request.weight = weight;
    return submit(request);
  }

  std::vector<JobId> add_many(std::size_t count, std::uint32_t nodes = 2) {
    std::vector<JobId> jobs;
    for (std::size_t i = 0; i < count; ++i) jobs.push_back(add(nodes));
    return jobs;
  }

  // Lets time pass until jobs that all take turns are old.
  void grow_old(std::size_t count) { pass(kYoung * static_cast<std::int64_t>(4 * count) + 1s); }

  Duration ran_in(JobId job, Duration time) {
    const Duration before = view(job).scheduled;
    pass(time);
    return view(job).scheduled - before;
  }
};

TEST(Young, JobHasHalfTheTimeBesideOldOnes) {
  YoungBench b;
  b.add_many(10);
  b.grow_old(10);
  const JobId young = b.add();
  EXPECT_GE(b.ran_in(young, 3s), 1400ms) << "less than a slice is lost at the start";
  EXPECT_DOUBLE_EQ(b.view(young).share, 0.5);
  b.pass(kYoung);
  EXPECT_NEAR(b.view(young).share, 1.0 / 11, 0.001) << "it is old now";
}

TEST(Young, OldJobKeepsAQuarterBesideYoungOnes) {
  YoungBench b;
  const JobId old = b.add();
  b.grow_old(1);
  b.add_many(20);
  b.pass(100ms);
  EXPECT_GE(b.view(old).share, 0.25);
  EXPECT_LE(b.view(old).share, 0.26);
}

TEST(Young, JobsOfOneAgeShareByWeight) {
  YoungBench b;
  const JobId heavy = b.add(2, 300);
  const JobId light = b.add(2, 100);
  b.pass(100ms);
  EXPECT_DOUBLE_EQ(b.view(heavy).share, 0.75);
  b.grow_old(4);
  EXPECT_DOUBLE_EQ(b.view(heavy).share, 0.75);
  EXPECT_DOUBLE_EQ(b.view(light).share, 0.25);
}

TEST(Young, EqualJobsGetEqualShares) {
  YoungBench b;
  const JobId first = b.add();
  const JobId second = b.add();
  b.pass(100s);
  const auto had = [&](JobId job) { return static_cast<double>(b.view(job).scheduled.count()); };
  EXPECT_NEAR(had(first) / had(second), 1, 0.01);
}

TEST(Young, SettingAppliesToRunningJobs) {
  YoungBench b;
  b.add_many(3);
  b.grow_old(3);
  const JobId last = b.add();
  b.pass(100ms);
  EXPECT_DOUBLE_EQ(b.view(last).share, 0.5);
  b.expect_ok(b.cluster.set(base::Setting::Young, 0, b.now));
  b.pass(100ms);
  EXPECT_DOUBLE_EQ(b.view(last).share, 0.25);
  b.expect_ok(b.cluster.set(base::Setting::Young, std::chrono::nanoseconds{1h}.count(), b.now));
  b.pass(100ms);
  EXPECT_DOUBLE_EQ(b.view(last).share, 0.25) << "all are young";
}

TEST(Young, RestartedHeadKnowsTheAges) {
  for (const Duration had : {1s, 3s}) {
    YoungBench b(1);
    const JobId old = b.add(1);
    b.grow_old(1);
    RecoveredJob job;
    job.id = JobId{77};
    job.request = Bench::on_nodes(1);
    job.request.weight = base::limits::kDefaultWeight;
    job.state = JobState::Running;
    job.attempt = base::make_attempt(job.id, 1);
    job.scheduled = had;
    job.nodes = {NodeId{0}};
    job.cores = {{0}};
    job.tasks_on_node = {1};
    b.take(b.cluster.recover({job}, b.now));
    b.connect(NodeId{0}, {{b.view(old).attempt, base::AttemptPhase::Running, {}, {}},
                          {job.attempt, base::AttemptPhase::Running, {}, {}}});
    b.add(1);
    b.pass(100ms);
    EXPECT_NEAR(b.view(job.id).share, had < kYoung ? 1.0 / 3 : 0.25, 0.001);
  }
}

// The weight of the first long job must not count among young jobs, or they had 2 % of the time.
TEST(Young, FirstLongJobIsNotBoostedWhileYoung) {
  YoungBench b;
  auto request = Bench::on_nodes(2);
  request.weight = base::limits::kDefaultWeight;
  request.scheduled_limit = 2h;
  const JobId first = b.submit(request);
  EXPECT_EQ(b.state(b.submit(request)), JobState::Pending);
  const JobId brief = b.add();
  b.pass(100ms);
  EXPECT_DOUBLE_EQ(b.view(brief).share, 0.5);
  EXPECT_DOUBLE_EQ(b.view(first).share, 0.5);
}

TEST(Young, EqualSharesDivideTheWeightsOfAUser) {
  YoungBench b;
  const JobId stranger = b.add(2, 400);
  std::vector<JobId> equal;
  for (const std::uint32_t weight : {300, 100}) {
    auto request = Bench::on_nodes(2);
    request.weight = weight;
    request.equal_share = true;
    equal.push_back(b.submit(request));
  }
  b.pass(100ms);
  for (const JobId job : equal) EXPECT_DOUBLE_EQ(b.view(job).share, 0.25);
  EXPECT_DOUBLE_EQ(b.view(stranger).share, 0.5) << "nothing is taken from others";
  EXPECT_NE(b.cluster.share_reason(equal[0]).find("divided equally with job"), std::string::npos);
}

TEST(ShareReason, NamesAgeOrderAndWeight) {
  YoungBench b;
  auto request = Bench::on_nodes(2);
  request.weight = base::limits::kDefaultWeight;
  request.scheduled_limit = 2h;
  const JobId first = b.submit(request);
  b.pass(100ms);
  EXPECT_EQ(b.cluster.share_reason(first), "share 100%: no other job takes turns on its cores");
  b.submit(request);  // it waits
  request.scheduled_limit = 1h;
  const JobId early = b.submit(request);
  b.pass(100ms);
  EXPECT_EQ(b.cluster.share_reason(early),
            "share 50%: weight 100; takes turns with 1 other slot on its nodes");
  b.grow_old(2);
  EXPECT_EQ(b.cluster.share_reason(first),
            "share 98%: first of the long jobs (time limit over 5m), which run one after the "
            "other, so its weight counts 48 times; weight 100; takes turns with 1 other slot on "
            "its nodes");
  EXPECT_EQ(b.cluster.share_reason(early),
            fmt::format("share 2%: job {} is ahead among the long jobs (time limit over 5m), which "
                        "run one after the other; weight 100; takes turns with 1 other slot on its "
                        "nodes",
                        first));
  const JobId young = b.add();
  b.pass(100ms);
  EXPECT_EQ(b.cluster.share_reason(young),
            "share 50%: young (scheduled for less than 2s); young jobs have at least half of the "
            "time; weight 100; takes turns with 2 other slots on its nodes");
  EXPECT_EQ(b.cluster.share_reason(JobId{999}), "");
}

// Long jobs, with or without a limit, neither shut a short one out nor take its time.
TEST(Young, ShortJobStartsBesideNineLongOnes) {
  for (const Duration limit : {Duration{0}, Duration{10min}}) {
    YoungBench b;
    auto request = Bench::on_nodes(2);
    request.scheduled_limit = limit;
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(b.state(b.submit(request)), JobState::Running) << i;
    }
    b.grow_old(9);
    const JobId brief = b.add(1);
    EXPECT_EQ(b.state(brief), JobState::Running);
    EXPECT_GE(b.ran_in(brief, 3s), 1400ms);
  }
}

}  // namespace
}  // namespace score::gang
