// Queue high goes before the other queues on the cores that its jobs have.
#include "gang/head/wait_reasons.hpp"
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

TEST(Queue, StoppedJobGetsNoSlices) {
  QueueBench b;
  b.add_nodes(1);
  const JobId first = b.submit(QueueBench::on_nodes(1));
  const JobId second = b.submit(QueueBench::on_nodes(1));
  b.pass(500ms);
  ASSERT_EQ(b.share_on(0, first), 0.5);
  b.expect_ok(b.cluster.set_stopped(first, true, b.now));
  const auto again = b.cluster.set_stopped(first, true, b.now);
  ASSERT_FALSE(again);
  EXPECT_TRUE(again.error().is(Errc::Busy)) << "two would end each other's stop";
  b.pass(500ms);
  EXPECT_EQ(b.share_on(0, first), 0.0);
  EXPECT_EQ(b.share_on(0, second), 1.0);
  EXPECT_EQ(b.state(first), JobState::Running);
  EXPECT_EQ(b.view(first).reasons, std::vector<std::string>{kStoppedReason});
  EXPECT_EQ(b.timetables.at(NodeId{0}).displaced, std::vector{b.view(first).attempt})
      << "its node lets it run when the head is gone";
  b.expect_ok(b.cluster.set_stopped(first, false, b.now));
  b.pass(500ms);
  EXPECT_EQ(b.share_on(0, first), 0.5);
}

TEST(Queue, StoppedHighJobKeepsItsCores) {
  QueueBench b;
  b.add_nodes(1);
  const JobId normal = b.submit(QueueBench::on_nodes(1));
  const JobId high = b.submit(QueueBench::high_on(1));
  b.pass(500ms);
  b.expect_ok(b.cluster.set_stopped(high, true, b.now));
  b.pass(500ms);
  EXPECT_EQ(b.share_on(0, high), 0.0);
  EXPECT_EQ(b.share_on(0, normal), 0.0);
  EXPECT_FALSE(b.cluster.set_stopped(JobId{99}, true, b.now));
}

TEST(Queue, JobIsNotStoppedBeforeItsTasksExist) {
  QueueBench b;
  b.add_nodes(2);
  b.stuck = {NodeId{1}};
  const JobId job = b.submit(QueueBench::on_nodes(2));
  b.pass(500ms);
  ASSERT_EQ(b.state(job), JobState::Running);
  const auto refused = b.cluster.set_stopped(job, true, b.now);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().is(base::Errc::Busy)) << refused.error().message();
  b.say(NodeId{1}, base::Started{b.view(job).attempt});
  b.expect_ok(b.cluster.set_stopped(job, true, b.now));
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

// ---- changed requests

TEST(Change, WaitingJobStartsWhenItFits) {
  QueueBench b(one_slot());
  b.add_nodes(2);
  const JobId first = b.submit(QueueBench::on_nodes(1));
  const JobId big = b.submit(QueueBench::on_nodes(2));
  ASSERT_EQ(b.state(big), JobState::Pending);
  b.expect_ok(b.cluster.change(big, QueueBench::on_nodes(1), b.now));
  EXPECT_EQ(b.state(big), JobState::Running);
  EXPECT_EQ(b.view(big).nodes.size(), 1U);
  b.finish(first);
}

TEST(Change, WaitingJobMovesInItsNewQueue) {
  QueueBench b(one_slot());
  b.add_nodes(1);
  const JobId runs = b.submit(QueueBench::on_nodes(1));
  const JobId earlier = b.submit(QueueBench::on_nodes(1));
  const JobId later = b.submit(QueueBench::on_nodes(1));
  b.expect_ok(b.cluster.change(later, QueueBench::high_on(1), b.now));
  b.finish(runs);
  b.pass(10ms);
  EXPECT_EQ(b.state(later), JobState::Running);
  EXPECT_EQ(b.state(earlier), JobState::Pending);
  b.finish(later);
  b.pass(10ms);
  EXPECT_EQ(b.state(earlier), JobState::Running);
}

TEST(Change, RunningJobTakesSlicesInItsNewQueue) {
  QueueBench b;
  b.add_nodes(2);
  const JobId one = b.submit(QueueBench::on_nodes(2));
  const JobId two = b.submit(QueueBench::on_nodes(2));
  b.pass(500ms);
  b.expect_ok(b.cluster.change(two, QueueBench::high_on(2), b.now));
  b.pass(200ms);
  EXPECT_EQ(b.share_on(0, two), 1.0);
  EXPECT_EQ(b.share_on(1, one), 0.0);
  b.expect_ok(b.cluster.change(two, QueueBench::on_nodes(2), b.now));
  b.pass(200ms);
  EXPECT_NEAR(b.share_on(0, one), 0.5, 0.1);
  b.finish(two);
  b.finish(one);
}

TEST(Change, LimitsOfRunningJobMove) {
  QueueBench b;
  b.add_nodes(1);
  auto request = QueueBench::on_nodes(1);
  request.wall_limit = 10s;
  const JobId job = b.submit(request);
  b.pass(2s);
  request.wall_limit = 20s;
  b.expect_ok(b.cluster.change(job, request, b.now));
  b.pass(15s);
  EXPECT_EQ(b.state(job), JobState::Running);
  request.wall_limit = 5s;
  const auto late = b.cluster.change(job, request, b.now);
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().context().find("the job has run for 17"), std::string::npos);
  request.wall_limit = 0s;
  request.scheduled_limit = 19s;
  b.expect_ok(b.cluster.change(job, request, b.now));
  b.pass(3s);
  EXPECT_EQ(b.state(job), JobState::TimedOut);
}

TEST(Change, RunningJobKeepsOrAvoidsExclusive) {
  QueueBench b;
  b.add_nodes(1);
  const JobId job = b.submit(QueueBench::on_nodes(1));
  auto request = QueueBench::on_nodes(1);
  request.queue = base::Queue::Exclusive;
  EXPECT_FALSE(b.cluster.change(job, request, b.now));
  EXPECT_EQ(b.view(job).request.queue, base::Queue::Normal);
}

TEST(Change, ImpossibleRequestChangesNothing) {
  QueueBench b(one_slot());
  b.add_nodes(2);
  b.submit(QueueBench::on_nodes(2));
  const JobId waits = b.submit(QueueBench::on_nodes(1));
  const auto refused = b.cluster.change(waits, QueueBench::on_nodes(3), b.now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context(), "requested 3 nodes; the cluster has 2");
  EXPECT_EQ(b.view(waits).request.nodes, 1U);
}

// ---- the signal before a limit

struct SignalBench : QueueBench {
  // Submits a job that gets SIGUSR1 2 s before its limit.
  JobId submit_warned(Duration scheduled, Duration wall, bool is_allocation = false,
                      bool is_for_script = false) {
    auto request = on_nodes(1);
    request.scheduled_limit = scheduled;
    request.wall_limit = wall;
    request.limit_signal = 10;
    request.limit_signal_before = 2s;
    request.allocation = is_allocation;
    request.limit_signal_script = is_for_script;
    return submit(request);
  }

  // Returns when SIGUSR1 is sent within `time`, from now on, and to whom; each attempt once.
  std::map<AttemptId, Duration> signals_in(Duration time) {
    std::map<AttemptId, Duration> out;
    const TimePoint begin = now;
    while (now < begin + time) {
      const TimePoint due = cluster.next_deadline().value_or(now + 50ms);
      now = std::clamp(due, now + 1us, now + 50ms);
      for (const auto& [id, info] : infos) take(cluster.heartbeat(id, now));
      take(cluster.tick(now));
      for (const auto& [node, message] : sent<base::SignalTasks>()) {
        if (message.signal != 10) continue;
        EXPECT_TRUE(out.emplace(message.attempt, now - begin).second);
      }
    }
    return out;
  }
};

TEST(LimitSignal, IsSentBeforeTheElapsedLimit) {
  SignalBench b;
  b.add_nodes(1);
  const JobId job = b.submit_warned(0s, 5s);
  const auto sent = b.signals_in(4s);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_NEAR(std::chrono::duration<double>(sent.at(b.view(job).attempt)).count(), 3.0, 0.11);
}

TEST(LimitSignal, CountsScheduledTimeOfJobsThatShare) {
  SignalBench b;
  b.add_nodes(1);
  b.submit(QueueBench::on_nodes(1));
  const JobId job = b.submit_warned(5s, 0s);
  const auto sent = b.signals_in(8s);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_NEAR(std::chrono::duration<double>(sent.at(b.view(job).attempt)).count(), 6.0, 0.5);
}

TEST(LimitSignal, FollowsARaisedLimit) {
  SignalBench b;
  b.add_nodes(1);
  const JobId job = b.submit_warned(0s, 5s);
  EXPECT_EQ(b.signals_in(4s).size(), 1U);
  auto request = b.view(job).request;
  request.wall_limit = 10s;
  b.expect_ok(b.cluster.change(job, request, b.now));
  EXPECT_EQ(b.signals_in(5s).size(), 1U);
  EXPECT_EQ(b.state(job), JobState::Running);
}

TEST(LimitSignal, GoesToStepsOrToTheScript) {
  for (const bool is_for_script : {false, true}) {
    SignalBench b;
    b.add_nodes(1, 2);
    const JobId job = b.submit_warned(0s, 5s, true, is_for_script);
    auto step = QueueBench::on_nodes(1);
    step.inside = job;
    const JobId inside = b.submit(step);
    b.pass(10ms);
    ASSERT_EQ(b.state(inside), JobState::Running);
    const auto sent = b.signals_in(4s);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_TRUE(sent.contains(b.view(is_for_script ? job : inside).attempt));
  }
}

}  // namespace
}  // namespace score::gang
