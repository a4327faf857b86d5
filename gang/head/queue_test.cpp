// Queue high goes before the other queues on the cores that its jobs have.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

struct QueueBench : Bench {
  using Bench::Bench;

  static base::ResourceRequest high_on(std::uint32_t nodes) {
    auto request = on_nodes(nodes);
    request.queue = base::Queue::High;
    return request;
  }

  // Returns the job's share of the next 400 ms.
  double share_on(std::uint32_t node, JobId job) {
    int ran = 0;
    for (int i = 0; i < 400; ++i) ran += runs(NodeId{node}, job, now + i * 1ms) ? 1 : 0;
    return ran / 400.0;
  }

  void report_all(JobId job, base::Activity activity) {
    const JobView v = view(job);
    for (const NodeId node : v.nodes) say(node, base::ActivityChanged{v.attempt, activity});
  }
};

constexpr base::Activity kIdle{.idle = true};

TEST(Queue, HighJobOwnsItsCoresWithinASlice) {
  QueueBench b;
  b.add_nodes(2);
  const JobId normal = b.submit(QueueBench::on_nodes(2));
  b.pass(500ms);
  const JobId high = b.submit(QueueBench::high_on(2));
  b.pass(100ms);
  for (const std::uint32_t node : {0U, 1U}) {
    EXPECT_EQ(b.share_on(node, high), 1.0);
    EXPECT_EQ(b.share_on(node, normal), 0.0);
  }
  EXPECT_EQ(b.state(normal), JobState::Running);
  EXPECT_EQ(b.view(normal).share, 0.0);
  EXPECT_EQ(b.view(normal).reasons.at(0),
            "gets no time while a job of queue high or urgent uses its cores");
  const Duration scheduled = b.view(normal).scheduled;
  b.pass(10s);
  EXPECT_EQ(b.view(normal).scheduled, scheduled) << "its time limit stands still";
  b.finish(high);
  b.pass(100ms);
  EXPECT_EQ(b.share_on(0, normal), 1.0);
  EXPECT_TRUE(b.view(normal).reasons.empty());
}

// No job is ended for it: the job that had the slot continues later.
TEST(Queue, UrgentJobRunsAtOnceWithoutFreeSlot) {
  QueueBench b(one_slot());
  b.add_nodes(2);
  const JobId normal = b.submit(QueueBench::on_nodes(2));
  const JobId waits = b.submit(QueueBench::on_nodes(1));
  b.pass(500ms);
  auto request = QueueBench::on_nodes(2);
  request.queue = base::Queue::Urgent;
  const JobId urgent = b.submit(request);
  b.pass(100ms);
  EXPECT_EQ(b.share_on(0, urgent), 1.0);
  EXPECT_EQ(b.state(normal), JobState::Running);
  EXPECT_EQ(b.state(waits), JobState::Pending);
  EXPECT_EQ(b.view(waits).reasons.back(), "too few free cores in each of the 1 slot");
  b.finish(urgent);
  b.pass(100ms);
  EXPECT_EQ(b.share_on(0, normal), 1.0);
  EXPECT_EQ(b.state(waits), JobState::Pending);
}

TEST(Queue, IdleHighJobLendsItsSlices) {
  QueueBench b;
  b.add_nodes(2);
  const JobId normal = b.submit(QueueBench::on_nodes(2));
  const JobId high = b.submit(QueueBench::high_on(2));
  b.pass(500ms);
  b.report_all(high, kIdle);
  b.pass(120ms);
  EXPECT_EQ(b.share_on(0, normal), 1.0);
  b.say(NodeId{1}, base::ActivityChanged{b.view(high).attempt, {}});
  b.pass(120ms);
  EXPECT_EQ(b.share_on(0, normal), 0.0);
  EXPECT_EQ(b.share_on(0, high), 1.0);
}

TEST(Queue, JobsOnOtherNodesAreNotAffected) {
  QueueBench b;
  b.add_nodes(4);
  const JobId wide = b.submit(QueueBench::on_nodes(4));
  const JobId left = b.submit(QueueBench::on_nodes(2));
  const JobId high = b.submit(QueueBench::high_on(1));
  b.pass(500ms);
  const auto busy = b.view(high).nodes.at(0).value();
  EXPECT_GE(busy, 2U) << "beside the job that has room in its row";
  EXPECT_EQ(b.share_on(busy, high), 1.0);
  EXPECT_EQ(b.share_on(0, left), 1.0) << "nor does it take turns with the displaced one";
  for (std::uint32_t node = 0; node < 4; ++node) EXPECT_EQ(b.share_on(node, wide), 0.0);
}

TEST(Queue, HighJobsShareByWeightAmongThemselves) {
  QueueBench b;
  b.add_nodes(1);
  const JobId normal = b.submit(QueueBench::on_nodes(1));
  auto heavy = QueueBench::high_on(1);
  heavy.weight = 3;
  const JobId first = b.submit(heavy);
  const JobId second = b.submit(QueueBench::high_on(1));
  b.pass(1s);
  EXPECT_EQ(b.share_on(0, first), 0.75);
  EXPECT_EQ(b.share_on(0, second), 0.25);
  EXPECT_EQ(b.share_on(0, normal), 0.0);
}

TEST(Queue, SuspendedOrHeldHighJobDisplacesNoJob) {
  QueueBench b;
  b.add_nodes(1);
  const JobId normal = b.submit(QueueBench::on_nodes(1));
  auto held = QueueBench::high_on(1);
  held.held = true;
  b.submit(held);
  const JobId high = b.submit(QueueBench::high_on(1));
  b.pass(500ms);
  b.expect_ok(b.cluster.suspend(high, b.now));
  b.pass(120ms);
  EXPECT_EQ(b.share_on(0, normal), 1.0);
  b.expect_ok(b.cluster.resume(high, b.now));
  b.pass(120ms);
  EXPECT_EQ(b.share_on(0, normal), 0.0);
}

TEST(Queue, ExclusiveJobSharesNoNodeWithHighJob) {
  QueueBench b;
  b.add_nodes(1);
  auto alone = QueueBench::on_nodes(1);
  alone.queue = base::Queue::Exclusive;
  const JobId exclusive = b.submit(alone);
  const JobId high = b.submit(QueueBench::high_on(1));
  b.pass(500ms);
  EXPECT_EQ(b.share_on(0, exclusive), 1.0);
  EXPECT_EQ(b.state(high), JobState::Pending);
}

// Tasks are forked in the job's own slices, and a displaced job has none.
TEST(Queue, DisplacedJobGetsMoreTimeToLaunch) {
  QueueBench b;
  b.add_nodes(1);
  const JobId high = b.submit(QueueBench::high_on(1));
  b.stuck = {NodeId{0}};
  const JobId normal = b.submit(QueueBench::on_nodes(1));
  b.pass(60s);
  EXPECT_EQ(b.state(normal), JobState::Running);
  b.finish(high);
  b.pass(5s);
  b.say(NodeId{0}, base::Started{b.view(normal).attempt});
  b.pass(30s);
  EXPECT_EQ(b.state(normal), JobState::Running);
}

}  // namespace
}  // namespace score::gang
