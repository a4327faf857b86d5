// Idle jobs leave the timetable and come back, and deadlocks are found.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

struct IdleBench : Bench {
  using Bench::Bench;

  // Lets every share of the job report this activity.
  void all_say(JobId job, base::Activity activity) {
    const JobView v = view(job);
    for (const NodeId node : v.nodes) say(node, base::ActivityChanged{v.attempt, activity});
  }

  void says(NodeId node, JobId job, base::Activity activity) {
    say(node, base::ActivityChanged{view(job).attempt, activity});
  }

  // Returns the job's share of the next 400 ms.
  double share_on(NodeId node, JobId job) {
    int ran = 0;
    for (int i = 0; i < 400; ++i) ran += runs(node, job, now + i * 1ms) ? 1 : 0;
    return ran / 400.0;
  }

  bool is_background(NodeId node, JobId job) {
    const auto plan = plan_of(node);
    const AttemptId attempt = view(job).attempt;
    return plan && std::count(plan->background.begin(), plan->background.end(), attempt) == 1;
  }
};

constexpr base::Activity kIdle{.idle = true};
constexpr base::Activity kWaits{.idle = true, .waits = true};
constexpr base::Activity kBusy{};

struct Pair : IdleBench {
  Pair() {
    add_nodes(2);
    idle = submit(on_nodes(2));
    busy = submit(on_nodes(2));
    pass(500ms);
  }

  JobId idle, busy;
};

TEST(Idle, IdleJobYieldsItsShareWithinASlice) {
  Pair b;
  EXPECT_EQ(b.share_on(NodeId{0}, b.busy), 0.5);
  b.all_say(b.idle, kIdle);
  b.pass(100ms);
  EXPECT_EQ(b.share_on(NodeId{0}, b.busy), 1.0);
  EXPECT_EQ(b.share_on(NodeId{0}, b.idle), 0.0);
  EXPECT_TRUE(b.is_background(NodeId{0}, b.idle));
  EXPECT_TRUE(b.is_background(NodeId{1}, b.idle));
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Idle);
  EXPECT_EQ(b.state(b.idle), JobState::Running);
}

TEST(Idle, OneBusyNodeKeepsJobInTimetable) {
  Pair b;
  b.says(NodeId{0}, b.idle, kIdle);
  b.pass(5s);
  EXPECT_EQ(b.share_on(NodeId{0}, b.idle), 0.5);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Busy);
}

TEST(Idle, FirstBusyNodeBringsJobBack) {
  Pair b;
  b.all_say(b.idle, kIdle);
  b.pass(3s);
  const Duration before = b.view(b.idle).scheduled;
  b.says(NodeId{1}, b.idle, kBusy);
  const TimePoint woke = b.now;
  b.pass(120ms);
  EXPECT_EQ(b.share_on(NodeId{0}, b.idle), 0.5);
  EXPECT_FALSE(b.is_background(NodeId{0}, b.idle));
  TimePoint t = woke;
  while (!b.runs(NodeId{0}, b.idle, t)) t += 1ms;
  EXPECT_LE(t - woke, 120ms);
  EXPECT_LE(b.view(b.idle).scheduled - before, 120ms) << "idle time is not scheduled time";
}

TEST(Idle, IdleJobKeepsCoresThatNoJobNeeds) {
  IdleBench b;
  b.add_nodes(2);
  const JobId alone = b.submit(Bench::on_nodes(1));
  const JobId beside = b.submit(Bench::on_nodes(1));
  b.pass(500ms);
  const auto epochs = b.cluster.counters().epochs;
  b.all_say(alone, kIdle);
  b.pass(1s);
  EXPECT_EQ(b.view(alone).activity, JobActivity::Idle);
  EXPECT_FALSE(b.view(alone).background);
  EXPECT_EQ(b.share_on(b.view(alone).nodes[0], alone), 1.0);
  EXPECT_EQ(b.share_on(b.view(beside).nodes[0], beside), 1.0);
  EXPECT_EQ(b.cluster.counters().epochs, epochs);
}

TEST(Idle, LaterBusyJobTakesItsPlaceAtOnce) {
  IdleBench b;
  b.add_nodes(1);
  const JobId idle = b.submit(Bench::on_nodes(1));
  b.pass(500ms);
  b.all_say(idle, kIdle);
  const JobId busy = b.submit(Bench::on_nodes(1));
  b.pass(100ms);
  EXPECT_EQ(b.share_on(NodeId{0}, busy), 1.0);
  b.finish(busy);
  b.pass(100ms);
  EXPECT_EQ(b.share_on(NodeId{0}, idle), 1.0);
}

TEST(Idle, SliceWithoutJobsEndsEarly) {
  Pair b;
  while (!b.runs(NodeId{0}, b.idle, b.now) || !b.runs(NodeId{0}, b.idle, b.now - 10ms) ||
         b.runs(NodeId{0}, b.idle, b.now - 11ms)) {
    b.pass(1ms);
  }
  b.all_say(b.idle, kIdle);  // 10 ms into its slice of 100
  const TimePoint said = b.now;
  b.pass(30ms);
  EXPECT_TRUE(b.runs(NodeId{0}, b.busy, said + 21ms));
  EXPECT_TRUE(b.runs(NodeId{1}, b.busy, said + 21ms));
  EXPECT_EQ(b.cluster.counters().early_yields, 1U);
}

// The idle job is reported by all its nodes 10 ms into its slice; returns when the other job gets
// them.
Duration notice_on(std::uint32_t count) {
  IdleBench b;
  b.add_nodes(count);
  const JobId idle = b.submit(Bench::on_nodes(count));
  const JobId busy = b.submit(Bench::on_nodes(count));
  b.pass(500ms);
  while (!b.runs(NodeId{0}, idle, b.now - 10ms) || b.runs(NodeId{0}, idle, b.now - 11ms)) {
    b.pass(1ms);
  }
  b.all_say(idle, kIdle);
  const TimePoint said = b.now;
  b.pass(30ms);
  TimePoint t = said;
  while (!b.runs(NodeId{0}, busy, t)) t += 250us;
  return t - said;
}

TEST(Idle, NoticeGrowsWithNodesUpToALimit) {
  EXPECT_LE(notice_on(2), 5ms);
  EXPECT_EQ(notice_on(64), 20ms);
  EXPECT_EQ(notice_on(100), 20ms);
}

TEST(Idle, SecondJobKeepsTheSlice) {
  IdleBench b;
  b.add_nodes(2);
  const JobId idle = b.submit(Bench::on_nodes(1));
  b.submit(Bench::on_nodes(1));
  const JobId both = b.submit(Bench::on_nodes(2));
  b.pass(500ms);
  while (!b.runs(NodeId{0}, idle, b.now) || b.runs(NodeId{0}, idle, b.now - 2ms)) b.pass(1ms);
  b.all_say(idle, kIdle);
  b.pass(30ms);
  EXPECT_EQ(b.cluster.counters().early_yields, 0U);
  EXPECT_FALSE(b.runs(NodeId{0}, both, b.now));
}

TEST(Idle, MessagesInFlightDelayIdleness) {
  Pair b;
  b.says(NodeId{0}, b.idle, {.idle = true, .sent = 7, .received = 3});
  b.says(NodeId{1}, b.idle, {.idle = true, .sent = 3, .received = 6});
  b.pass(500ms);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Busy);
  b.says(NodeId{1}, b.idle, {.idle = true, .sent = 3, .received = 7});
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Idle);
}

TEST(Idle, UntakenMessagesDelayIdlenessOnlyForATime) {
  Pair b;
  b.all_say(b.idle, {.idle = true, .sent = 5, .received = 4});
  b.pass(900ms);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Busy);
  b.pass(200ms);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Idle);
}

TEST(Idle, JobWaitingOnlyForMessagesIsDeadlocked) {
  Pair b;
  b.all_say(b.idle, kWaits);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Idle);
  b.pass(4900ms);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Idle);
  b.pass(200ms);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Deadlocked);
  EXPECT_EQ(b.state(b.idle), JobState::Running);
  b.says(NodeId{0}, b.idle, kBusy);  // such as by a signal
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Busy);
}

TEST(Idle, OtherWaitIsNoDeadlock) {
  Pair b;
  b.says(NodeId{0}, b.idle, kWaits);
  b.says(NodeId{1}, b.idle, kIdle);
  b.pass(60s);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Idle);
}

TEST(Idle, ShortActivityRestartsDeadlockTime) {
  Pair b;
  b.all_say(b.idle, kWaits);
  for (int i = 0; i < 10; ++i) {
    b.pass(4s);
    b.says(NodeId{1}, b.idle, kBusy);
    b.pass(100ms);
    b.says(NodeId{1}, b.idle, kWaits);
    EXPECT_NE(b.view(b.idle).activity, JobActivity::Deadlocked);
  }
}

TEST(Idle, DeadlockedJobIsEndedOnRequest) {
  IdleBench b;
  b.add_nodes(2);
  base::ResourceRequest request = Bench::on_nodes(2);
  request.kill_deadlock = true;
  const JobId job = b.submit(request);
  b.pass(500ms);
  b.says(NodeId{1}, job, {.idle = true, .waits = true, .tasks = {{1, "MPI_Recv", 0, 3}}});
  b.says(NodeId{0}, job, {.idle = true, .waits = true, .tasks = {{0, "MPI_Recv", 1, 7}}});
  b.pass(6s);
  EXPECT_EQ(b.state(job), JobState::Failed);
  EXPECT_EQ(b.view(job).exit_code, 125);
  EXPECT_EQ(b.view(job).reasons.at(0),
            "deadlock: no task can send: rank 0 in MPI_Recv from rank 1, tag 7; rank 1 in MPI_Recv "
            "from rank 0, tag 3");
}

TEST(Idle, MessageInFlightIsNoDeadlock) {
  Pair b;
  b.says(NodeId{0}, b.idle, {.idle = true, .waits = true, .sent = 3});
  b.says(NodeId{1}, b.idle, {.idle = true, .waits = true, .received = 2});
  b.pass(60s);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Idle);
  b.says(NodeId{1}, b.idle, {.idle = true, .waits = true, .received = 3});
  b.pass(4900ms);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Idle) << "counted from the change";
  b.pass(200ms);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Deadlocked);
  EXPECT_EQ(b.cluster.counters().deadlocks, 1U);
}

// Reports of a silent node may be in flight.
TEST(Idle, NoDeadlockIsFoundWithSilentNode) {
  ClusterConfig config;
  config.deadlock_after = ClusterConfig::kMinDeadlockAfter;
  IdleBench b(config);
  b.add_nodes(2);
  const JobId job = b.submit(Bench::on_nodes(2));
  b.pass(500ms);
  b.all_say(job, kWaits);
  b.silent = {NodeId{1}};
  b.pass(3500ms);
  EXPECT_EQ(b.cluster.node(NodeId{1})->state, NodeState::Suspect);
  EXPECT_EQ(b.view(job).activity, JobActivity::Idle);
  b.silent.clear();
  b.pass(4s);
  EXPECT_EQ(b.view(job).activity, JobActivity::Deadlocked);
}

TEST(Idle, NoJobLeavesTimetableWithoutIdleDetection) {
  Pair b;
  b.expect_ok(b.cluster.set(base::Setting::IdleDetection, false, b.now));
  b.all_say(b.idle, kIdle);
  b.pass(300ms);
  EXPECT_EQ(b.share_on(NodeId{0}, b.idle), 0.5);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Idle);
  b.expect_ok(b.cluster.set(base::Setting::IdleDetection, true, b.now));
  b.pass(300ms);
  EXPECT_EQ(b.share_on(NodeId{0}, b.idle), 0.0);
}

TEST(Idle, SuspendResetsIdleness) {
  Pair b;
  b.all_say(b.idle, kIdle);
  b.pass(300ms);
  b.expect_ok(b.cluster.suspend(b.idle, b.now));
  b.pass(300ms);
  EXPECT_FALSE(b.is_background(NodeId{0}, b.idle)) << "it must be frozen, not let run";
  b.all_say(b.idle, kBusy);  // it has left the background
  b.expect_ok(b.cluster.resume(b.idle, b.now));
  b.pass(300ms);
  EXPECT_EQ(b.share_on(NodeId{0}, b.idle), 0.5);
  b.expect_ok(b.cluster.suspend(b.idle, b.now));
  b.all_say(b.idle, kIdle);
  b.expect_ok(b.cluster.resume(b.idle, b.now));
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Idle) << "the nodes would not report it again";
}

TEST(Idle, ReconnectedNodeKeepsActivityOfItsJobs) {
  Pair b;
  b.all_say(b.idle, kIdle);
  b.pass(300ms);
  b.connect(NodeId{0}, {{b.view(b.idle).attempt, base::AttemptPhase::Running, {}, {}},
                        {b.view(b.busy).attempt, base::AttemptPhase::Running, {}, {}}});
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Idle) << "its link broke, nothing else";
  b.says(NodeId{0}, b.idle, kBusy);
  EXPECT_EQ(b.view(b.idle).activity, JobActivity::Busy);
}

TEST(Idle, ReportsAboutEndedAttemptsAreCounted) {
  Pair b;
  const AttemptId attempt = b.view(b.idle).attempt;
  b.cancel(b.idle);
  const auto stale = b.cluster.counters().stale_reports;
  b.say(NodeId{0}, base::ActivityChanged{attempt, kIdle});
  b.say(NodeId{0}, base::ActivityChanged{AttemptId{99'999}, kIdle});
  EXPECT_EQ(b.cluster.counters().stale_reports, stale + 2);
}

}  // namespace
}  // namespace score::gang
