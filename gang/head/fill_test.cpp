// Tests the attempts that the timetables let fill, and the changes of that set.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

struct FillBench : Bench {
  explicit FillBench(std::uint32_t nodes = 2) {
    add_nodes(nodes);
    expect_ok(cluster.set(base::Setting::Fill, true, now));
  }

  [[nodiscard]] std::vector<JobId> filling_on(NodeId node) const {
    std::vector<JobId> jobs;
    for (const AttemptId attempt : timetables.at(node).fill) jobs.push_back(base::job_of(attempt));
    return jobs;
  }
};

using Jobs = std::vector<JobId>;

TEST(Fill, JobsThatTakeTurnsMayFill) {
  FillBench b;
  const JobId first = b.submit(Bench::on_nodes(2));
  b.pass(500ms);
  EXPECT_EQ(b.filling_on(NodeId{0}), Jobs{}) << "alone it runs all the time";
  const JobId second = b.submit(Bench::on_nodes(2));
  b.pass(500ms);
  EXPECT_EQ(b.filling_on(NodeId{0}), (Jobs{first, second}));
  EXPECT_EQ(b.filling_on(NodeId{1}), (Jobs{first, second}));
  b.finish(first);
  b.pass(500ms);
  EXPECT_EQ(b.filling_on(NodeId{0}), Jobs{});
}

TEST(Fill, FillIsOffUntilConfigured) {
  Bench b;
  b.add_nodes(1);
  b.submit(Bench::on_nodes(1));
  b.submit(Bench::on_nodes(1));
  b.pass(500ms);
  EXPECT_TRUE(b.timetables.at(NodeId{0}).fill.empty());
}

TEST(Fill, ChangeOfFillPolicyIsPublished) {
  FillBench b;
  const JobId first = b.submit(Bench::on_nodes(2));
  const JobId second = b.submit(Bench::on_nodes(2));
  b.pass(500ms);
  const auto epoch = b.timetables.at(NodeId{0}).epoch;
  b.expect_ok(b.cluster.set(base::Setting::Fill, true, b.now));
  b.pass(200ms);
  EXPECT_EQ(b.timetables.at(NodeId{0}).epoch, epoch) << "nothing has changed";
  b.expect_ok(b.cluster.set(base::Setting::Fill, false, b.now));
  b.pass(200ms);
  EXPECT_GT(b.timetables.at(NodeId{0}).epoch, epoch);
  EXPECT_EQ(b.filling_on(NodeId{0}), Jobs{});
  b.expect_ok(b.cluster.set(base::Setting::Fill, true, b.now));
  b.pass(200ms);
  EXPECT_EQ(b.filling_on(NodeId{1}), (Jobs{first, second}));
}

TEST(Fill, JobsThatRefuseFillAreNotListed) {
  FillBench b;
  base::ResourceRequest alone = Bench::on_nodes(2);
  alone.no_fill = true;
  b.submit(alone);
  const JobId second = b.submit(Bench::on_nodes(2));
  b.pass(500ms);
  EXPECT_EQ(b.filling_on(NodeId{0}), Jobs{second});
}

TEST(Fill, OnlyQueuesOfThePolicyFill) {
  FillBench b;
  base::ResourceRequest request = Bench::on_nodes(2);
  request.queue = base::Queue::High;
  const JobId first = b.submit(request);
  const JobId second = b.submit(request);
  b.pass(500ms);
  EXPECT_EQ(b.filling_on(NodeId{0}), (Jobs{first, second}));
  b.take(b.cluster.set_fill_queues({base::Queue::Normal}, b.now));
  b.pass(200ms);
  EXPECT_EQ(b.filling_on(NodeId{0}), Jobs{});
}

TEST(Fill, DisplacedJobDoesNotFill) {
  FillBench b;
  const JobId normal = b.submit(Bench::on_nodes(2));
  base::ResourceRequest request = Bench::on_nodes(2);
  request.queue = base::Queue::High;
  const JobId first = b.submit(request);
  const JobId second = b.submit(request);
  b.pass(500ms);
  EXPECT_EQ(b.view(normal).share, 0);
  EXPECT_EQ(b.filling_on(NodeId{0}), (Jobs{first, second}));
}

TEST(Fill, IdleAndSuspendedJobsDoNotFill) {
  FillBench b(1);
  const JobId idle = b.submit(Bench::on_nodes(1));
  const JobId suspended = b.submit(Bench::on_nodes(1));
  const JobId first = b.submit(Bench::on_nodes(1));
  const JobId second = b.submit(Bench::on_nodes(1));
  b.pass(500ms);
  b.say(NodeId{0}, base::ActivityChanged{b.view(idle).attempt, {.idle = true}});
  b.expect_ok(b.cluster.suspend(suspended, b.now));
  b.pass(500ms);
  EXPECT_EQ(b.filling_on(NodeId{0}), (Jobs{first, second}));
  EXPECT_EQ(b.timetables.at(NodeId{0}).background.size(), 1U);
}

TEST(Fill, JobsThatShareAChannelDoNotFill) {
  FillBench b;
  const JobId first = b.submit(Bench::on_nodes(2));
  const JobId second = b.submit(Bench::on_nodes(2));
  const JobId third = b.submit(Bench::on_nodes(2));
  b.pass(500ms);
  b.take(b.cluster.set_shares_channel(first, true, b.now));
  b.take(b.cluster.set_shares_channel(second, true, b.now));
  b.take(b.cluster.set_shares_channel(JobId{99}, true, b.now));
  b.pass(500ms);
  EXPECT_EQ(b.filling_on(NodeId{0}), Jobs{third});
  b.finish(first);
  b.take(b.cluster.set_shares_channel(second, false, b.now));
  b.pass(500ms);
  EXPECT_EQ(b.filling_on(NodeId{0}), (Jobs{second, third}));
}

TEST(Fill, FilledTimeInHelloCountsOnce) {
  FillBench b;
  const JobId job = b.submit(Bench::on_nodes(2));
  b.pass(500ms);
  const AttemptId attempt = b.view(job).attempt;
  const std::vector<base::TaskExit> exits{{base::Rank{0}, 0, 0}};
  b.connect(NodeId{0}, {{attempt, base::AttemptPhase::Exited, exits, "", 3s}});
  EXPECT_EQ(b.view(job).filled, 3s);
  b.say(NodeId{0}, base::Exited{attempt, exits, "", 3s});
  EXPECT_EQ(b.view(job).filled, 3s);
}

TEST(Fill, FillIsRefusedInBarrierMode) {
  ClusterConfig config;
  config.can_fill = false;
  Bench b(config);
  const auto refused = b.cluster.set(base::Setting::Fill, true, b.now);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("switch_mode"), std::string::npos);
  EXPECT_FALSE(b.cluster.config().fill);
  EXPECT_TRUE(b.cluster.set(base::Setting::Fill, false, b.now));
}

}  // namespace
}  // namespace score::gang
