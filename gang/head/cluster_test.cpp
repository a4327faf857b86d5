// Tests the life of jobs: launch, end, limits and refusals. Hostile reports are harmless.
#include "gang/head/cluster.hpp"

#include "tests/support/gang/cluster_bench.hpp"

#include <numeric>

namespace score::gang {
namespace {

TEST(Cluster, RunsAJobFromSubmissionToCompletion) {
  Bench b;
  b.add_nodes(4);
  const JobId job = b.submit(Bench::on_nodes(4));
  EXPECT_EQ(b.state(job), JobState::Running);
  b.pass(50ms);
  for (std::uint32_t n = 0; n < 4; ++n) EXPECT_TRUE(b.runs(NodeId{n}, job, b.now));
  b.finish(job);
  EXPECT_EQ(b.state(job), JobState::Completed);
  EXPECT_EQ(b.view(job).exit_code, 0);
  EXPECT_EQ(b.sent<base::ForgetTasks>().size(), 4U);
}

TEST(Cluster, SendsTheTimetableBeforeStartTasks) {
  Bench b;
  b.add_nodes(1);
  b.submit(Bench::on_nodes(1));
  bool table = false;
  for (const Action& action : b.last) {
    const auto* send = std::get_if<SendToNode>(&action);
    if (send == nullptr) continue;
    table |= std::holds_alternative<base::SetTimetable>(send->message);
    EXPECT_TRUE(table || !std::holds_alternative<base::StartTasks>(send->message));
  }
  EXPECT_EQ(b.sent<base::StartTasks>().size(), 1U);
}

TEST(Cluster, TwoJobsOnTheSameCoresTakeTurns) {
  Bench b;
  b.add_nodes(2);
  const JobId first = b.submit(Bench::on_nodes(2));
  b.pass(1s);
  const JobId second = b.submit(Bench::on_nodes(2));
  b.pass(500ms);
  int both = 0, one = 0, other = 0;
  for (int i = 0; i < 400; ++i) {
    const TimePoint t = b.now + i * 1ms;
    const bool f = b.runs(NodeId{0}, first, t), s = b.runs(NodeId{0}, second, t);
    both += f && s;
    one += f;
    other += s;
    EXPECT_EQ(f, b.runs(NodeId{1}, first, t));
    EXPECT_EQ(s, b.runs(NodeId{1}, second, t));
  }
  EXPECT_EQ(both, 0);
  EXPECT_EQ(one, 200);
  EXPECT_EQ(other, 200);
}

TEST(Cluster, SecondJobMakesProgressWithinTwoSlices) {
  Bench b;
  b.add_nodes(8);
  b.submit(Bench::on_nodes(8));
  b.pass(1234567us);
  for (int round = 0; round < 5; ++round) {
    const TimePoint submitted = b.now;
    const JobId job = b.submit(Bench::on_nodes(8));
    b.pass(300ms);
    TimePoint t = submitted;
    while (!b.runs(NodeId{0}, job, t) && t < submitted + 2s) t += 1ms;
    EXPECT_LE(t - submitted, round == 0 ? 21ms : 121ms) << "with " << round + 1 << " before it";
    b.pass(777ms);
  }
}

TEST(Cluster, RefusalEndsTheJobAndNamesTheNode) {
  Bench b;
  b.add_nodes(3);
  b.deaf = {NodeId{0}, NodeId{1}, NodeId{2}};
  const JobId job = b.submit(Bench::on_nodes(3));
  ASSERT_EQ(b.state(job), JobState::Launching);
  const AttemptId attempt = b.view(job).attempt;
  b.say(NodeId{0}, base::Prepared{attempt});
  b.say(NodeId{2}, base::Refused{attempt, 127, "./a.out: No such file or directory"});
  EXPECT_EQ(b.state(job), JobState::LaunchFailed);
  EXPECT_EQ(b.view(job).exit_code, 127);
  ASSERT_EQ(b.view(job).reasons.size(), 1U);
  EXPECT_EQ(b.view(job).reasons[0], "node02: ./a.out: No such file or directory");
  EXPECT_TRUE(b.cluster.matrix().slices.empty());
}

TEST(Cluster, LaunchDeadlineNamesTheSilentNodes) {
  Bench b;
  b.add_nodes(3);
  b.deaf = {NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(3));
  b.pass(8s);
  EXPECT_EQ(b.state(job), JobState::Launching);
  b.pass(1s);
  EXPECT_EQ(b.view(job).relaunches, 1U);
  EXPECT_EQ(b.view(job).lost, "no answer within 8.5s from node01");
}

TEST(Cluster, FailedLaunchEndsInTimeIfNodeHangs) {
  Bench b;
  b.add_nodes(3);
  b.deaf = {NodeId{1}};
  b.unkillable = {NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(3));
  b.pass(9s);
  EXPECT_EQ(b.state(job), JobState::Completing);
  b.pass(900ms);
  EXPECT_EQ(b.state(job), JobState::Pending) << "the other two nodes are too few";
  EXPECT_EQ(b.view(job).relaunches, 1U);
}

TEST(Cluster, FirstFailingTaskGivesTheExitCode) {
  Bench b;
  b.add_nodes(2);
  b.unkillable = {NodeId{0}, NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(2));
  const AttemptId attempt = b.view(job).attempt;
  b.say(NodeId{1}, base::TaskEnded{attempt, {base::Rank{1}, 3, 0}});
  EXPECT_EQ(b.state(job), JobState::Completing);
  EXPECT_EQ(b.sent<base::KillTasks>().size(), 2U);
  b.say(NodeId{0}, base::Exited{attempt, {{base::Rank{0}, 0, 9}}, {}});
  b.say(NodeId{1}, base::Exited{attempt, {{base::Rank{1}, 3, 0}}, {}});
  EXPECT_EQ(b.state(job), JobState::Failed);
  EXPECT_EQ(b.view(job).exit_code, 3) << "the killed task must not count";
  EXPECT_EQ(b.view(job).reasons.at(0), "rank 1 on node01 exited with 3");
}

// Ranks that lose a peer abort, and that may be reported before the peer's end.
TEST(Cluster, NamesFirstFailedTaskInAnyReportOrder) {
  Bench b;
  b.add_nodes(3);
  b.unkillable = {NodeId{0}, NodeId{1}, NodeId{2}};
  const JobId job = b.submit(Bench::on_nodes(3));
  const AttemptId attempt = b.view(job).attempt;
  const base::TimePoint lost{5s};
  b.say(NodeId{0}, base::AbortRequested{attempt, base::Rank{0}, 14, "lost a peer", lost + 1ms});
  EXPECT_EQ(b.sent<base::KillTasks>().size(), 3U);
  b.say(NodeId{2}, base::AbortRequested{attempt, base::Rank{2}, 14, "lost a peer", lost + 2ms});
  EXPECT_EQ(b.view(job).reasons.at(0), "rank 0 on node00 aborted with 14: lost a peer");
  b.say(NodeId{0}, base::Exited{attempt, {{base::Rank{0}, 14, 0, lost + 3ms}}, {}});
  b.say(NodeId{1}, base::Exited{attempt, {{base::Rank{1}, 0, 11, lost}}, {}});
  b.say(NodeId{2}, base::Exited{attempt, {{base::Rank{2}, 0, 9}}, {}});
  EXPECT_EQ(b.state(job), JobState::Failed);
  EXPECT_EQ(b.view(job).reasons.at(0), "rank 1 on node01 was killed by signal 11");
  EXPECT_EQ(b.view(job).exit_code, 139);
}

// The task's connections were closed before its end could be reported.
TEST(Cluster, CrashedTaskIsNamedBeforeAbortingPeers) {
  for (const bool was_ending : {true, false}) {
    Bench b;
    b.add_nodes(2);
    b.unkillable = {NodeId{0}, NodeId{1}};
    const JobId job = b.submit(Bench::on_nodes(2));
    const AttemptId attempt = b.view(job).attempt;
    const base::TimePoint lost{5s};
    b.say(NodeId{0}, base::AbortRequested{attempt, base::Rank{0}, 14, "lost a peer", lost});
    b.say(NodeId{0}, base::Exited{attempt, {{base::Rank{0}, 14, 0, lost + 1ms}}, {}});
    b.say(NodeId{1}, base::Exited{attempt, {{base::Rank{1}, 0, 9, lost + 2ms, was_ending}}, {}});
    EXPECT_EQ(b.view(job).reasons.at(0), was_ending
                                             ? "rank 1 on node01 was killed by signal 9"
                                             : "rank 0 on node00 aborted with 14: lost a peer");
    EXPECT_EQ(b.view(job).exit_code, was_ending ? 137 : 14);
  }
}

TEST(Cluster, NamesCrashReportedBeforeTheKill) {
  Bench b;
  b.add_nodes(2);
  b.unkillable = {NodeId{0}, NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(2));
  const AttemptId attempt = b.view(job).attempt;
  b.say(NodeId{0}, base::AbortRequested{attempt, base::Rank{0}, 14, "lost a peer"});
  b.say(NodeId{1}, base::TaskEnded{attempt, {base::Rank{1}, 0, 9}});
  EXPECT_EQ(b.view(job).reasons.at(0), "rank 1 on node01 was killed by signal 9");
}

TEST(Cluster, LeavingTaskIsNamedBeforeAbortingPeers) {
  Bench b;
  b.add_nodes(2);
  b.unkillable = {NodeId{0}, NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(2));
  const AttemptId attempt = b.view(job).attempt;
  b.say(NodeId{0}, base::AbortRequested{attempt, base::Rank{0}, 14, "", base::TimePoint(1s)});
  b.say(NodeId{1},
        base::AbortRequested{attempt, base::Rank{1}, 1, "left", base::TimePoint(2s), true});
  EXPECT_EQ(b.view(job).reasons.at(0), "rank 1 on node01 aborted with 1: left");
}

// This happens when a machine reboots: its daemon stops first, and the ranks of other nodes abort.
TEST(Cluster, NodeLostBeforeAbortIsTheCause) {
  for (const bool was_lost_first : {true, false}) {
    Bench b;
    b.add_nodes(2);
    b.unkillable = {NodeId{0}, NodeId{1}};
    const JobId job = b.submit(Bench::on_nodes(2));
    const AttemptId attempt = b.view(job).attempt;
    const base::TimePoint lost = b.now;
    b.take(b.cluster.node_disconnected(NodeId{1}, b.now, true));
    const base::TimePoint asked = was_lost_first ? lost + 1ms : lost - 1ms;
    b.say(NodeId{0}, base::AbortRequested{attempt, base::Rank{0}, 14, "lost a peer", asked});
    b.say(NodeId{0}, base::Exited{attempt, {{base::Rank{0}, 14, 0, asked}}, {}});
    EXPECT_EQ(b.state(job), JobState::Completing) << "node01 may come back with its tasks";
    b.connect(NodeId{1});
    EXPECT_EQ(b.state(job), was_lost_first ? JobState::NodeFailed : JobState::Failed);
    EXPECT_EQ(b.view(job).reasons.at(0), was_lost_first
                                             ? "node01 came back without the job"
                                             : "rank 0 on node00 aborted with 14: lost a peer");
  }
}

TEST(Cluster, EarlierFailureDoesNotExplainCancelledJob) {
  Bench b;
  b.add_nodes(1);
  b.unkillable = {NodeId{0}};
  const JobId job = b.submit(Bench::on_nodes(1));
  b.cancel(job);
  b.say(NodeId{0},
        base::Exited{b.view(job).attempt, {{base::Rank{0}, 1, 0, base::TimePoint(1s)}}, {}});
  EXPECT_EQ(b.state(job), JobState::Cancelled);
}

TEST(Cluster, KeepGoingJobsEndWithTheHighestCode) {
  Bench b;
  b.add_nodes(3);
  const JobId job = b.submit(Bench::on_nodes(3));
  ASSERT_TRUE(b.cluster.set_keep_going(job, true));
  const AttemptId attempt = b.view(job).attempt;
  b.say(NodeId{0}, base::Exited{attempt, {{base::Rank{0}, 7, 0}}, {}});
  b.say(NodeId{1}, base::Exited{attempt, {{base::Rank{1}, 0, 11}}, {}});
  EXPECT_EQ(b.state(job), JobState::Running);
  b.say(NodeId{2}, base::Exited{attempt, {{base::Rank{2}, 0, 0}}, {}});
  EXPECT_EQ(b.state(job), JobState::Failed);
  EXPECT_EQ(b.view(job).exit_code, 139);
}

TEST(Cluster, TasksOfStoppingJobDoNotEndOthers) {
  Bench b;
  b.add_nodes(3);
  const JobId job = b.submit(Bench::on_nodes(3));
  ASSERT_TRUE(b.cluster.let_end(job));
  const AttemptId attempt = b.view(job).attempt;
  b.say(NodeId{0}, base::TaskEnded{attempt, {base::Rank{0}, 0, 15}});
  b.say(NodeId{1}, base::AbortRequested{attempt, base::Rank{1}, 1, "no MPI_Finalize", {}, true});
  EXPECT_EQ(b.state(job), JobState::Running);
  b.say(NodeId{2}, base::AbortRequested{attempt, base::Rank{2}, 42, "MPI_Abort"});
  EXPECT_NE(b.state(job), JobState::Running);
}

TEST(Cluster, AbortEndsTheJobWithItsCode) {
  Bench b;
  b.add_nodes(2);
  const JobId job = b.submit(Bench::on_nodes(2));
  b.say(NodeId{1}, base::AbortRequested{b.view(job).attempt, base::Rank{1}, 42, "no convergence"});
  EXPECT_EQ(b.state(job), JobState::Failed);
  EXPECT_EQ(b.view(job).exit_code, 42);
  EXPECT_EQ(b.view(job).reasons.at(0), "rank 1 on node01 aborted with 42: no convergence");
}

TEST(Cluster, JobHasTheReasonFromItsNode) {
  Bench b;
  b.add_nodes(1);
  const JobId job = b.submit(Bench::on_nodes(1));
  b.say(NodeId{0},
        base::Exited{b.view(job).attempt, {{base::Rank{0}, 0, 9}}, "memory limit 64M exceeded"});
  EXPECT_EQ(b.state(job), JobState::Failed);
  EXPECT_EQ(b.view(job).exit_code, 137);
  EXPECT_EQ(b.view(job).reasons.at(0), "node00: memory limit 64M exceeded");
}

base::Exited out_of_memory(const Bench& b, JobId job, std::uint32_t rank, int code) {
  base::Exited exited{
      b.view(job).attempt, {{base::Rank{rank}, code, 0}}, "memory limit 64M exceeded"};
  exited.oom_kills = 1;
  return exited;
}

TEST(Cluster, JobReportsOutOfMemory) {
  for (const int code : {0, 3}) {
    Bench b;
    b.add_nodes(1);
    const JobId job = b.submit(Bench::on_nodes(1));
    b.say(NodeId{0}, out_of_memory(b, job, 0, code));
    EXPECT_EQ(b.state(job), JobState::OutOfMemory);
    EXPECT_EQ(b.view(job).exit_code, code == 0 ? 137 : code);
    EXPECT_EQ(b.view(job).reasons.at(0), "node00: memory limit 64M exceeded");
    const auto& ended = b.cluster.counters().jobs_ended;
    EXPECT_EQ(ended.at(static_cast<std::size_t>(JobState::OutOfMemory)), 1U);
    EXPECT_EQ(std::accumulate(ended.begin(), ended.end(), std::uint64_t{0}), 1U);
  }
}

TEST(Cluster, LostProcessDoesNotEndOtherNodesTasks) {
  Bench b;
  b.add_nodes(2);
  const JobId job = b.submit(Bench::on_nodes(2));
  b.say(NodeId{0}, out_of_memory(b, job, 0, 0));
  EXPECT_EQ(b.state(job), JobState::Running);
  b.say(NodeId{1}, base::Exited{b.view(job).attempt, {{base::Rank{1}, 0, 0}}, ""});
  EXPECT_EQ(b.state(job), JobState::OutOfMemory);
}

TEST(Cluster, CancelledRunningJobWaitsForItsNodes) {
  Bench b;
  b.add_nodes(1);
  b.unkillable = {NodeId{0}};
  base::ResourceRequest held = Bench::on_nodes(1);
  held.held = true;
  const JobId waiting = b.submit(held);
  const JobId running = b.submit(Bench::on_nodes(1));
  b.cancel(waiting);
  EXPECT_EQ(b.state(waiting), JobState::Cancelled);
  b.cancel(running);
  EXPECT_EQ(b.state(running), JobState::Completing);
  b.say(NodeId{0}, base::Exited{b.view(running).attempt, {{base::Rank{0}, 0, 9}}, {}});
  EXPECT_EQ(b.state(running), JobState::Cancelled);
  EXPECT_FALSE(b.cluster.cancel(running, EndCause::User, b.now));
}

TEST(Cluster, ScheduledLimitCountsOnlyTurns) {
  Bench b;
  b.add_nodes(1);
  base::ResourceRequest wall = Bench::on_nodes(1);
  wall.wall_limit = 10s;
  base::ResourceRequest turns = Bench::on_nodes(1);
  turns.scheduled_limit = 10s;
  const JobId by_wall = b.submit(wall);
  const JobId by_turns = b.submit(turns);
  b.pass(9900ms);
  EXPECT_EQ(b.state(by_wall), JobState::Running);
  b.pass(200ms);
  EXPECT_EQ(b.state(by_wall), JobState::TimedOut);
  EXPECT_EQ(b.view(by_wall).exit_code, 124);
  EXPECT_NEAR(std::chrono::duration<double>(b.view(by_turns).scheduled).count(), 5.0, 0.25);
  b.pass(4700ms);
  EXPECT_EQ(b.state(by_turns), JobState::Running);
  b.pass(500ms);
  EXPECT_EQ(b.state(by_turns), JobState::TimedOut);
  EXPECT_NEAR(std::chrono::duration<double>(b.view(by_turns).scheduled).count(), 10.0, 0.02);
}

TEST(Cluster, LostNodeEndsItsJobsOnAllNodes) {
  Bench b;
  b.add_nodes(3);
  const JobId there = b.submit(Bench::on_nodes(2));
  b.pass(1s);
  b.silent = {NodeId{1}};
  b.pass(2500ms);
  EXPECT_EQ(b.cluster.node(NodeId{1})->state, NodeState::Suspect);
  EXPECT_EQ(b.state(there), JobState::Running);
  b.pass(1500ms);
  EXPECT_EQ(b.cluster.node(NodeId{1})->state, NodeState::Down);
  EXPECT_EQ(b.state(there), JobState::NodeFailed);
  EXPECT_EQ(b.view(there).reasons.at(0), "node01 lost: no heartbeat for 4.0s");
}

TEST(Cluster, OtherNodesReportNodeAliveOrSilent) {
  Bench b;
  b.add_nodes(3);
  b.silent = {NodeId{1}, NodeId{2}};
  for (int i = 0; i < 5; ++i) {
    b.pass(1s);
    b.take(b.cluster.relayed_heartbeats({.alive = {NodeId{1}, NodeId{7}}}, b.now));
  }
  EXPECT_EQ(b.cluster.node(NodeId{1})->state, NodeState::Up);
  EXPECT_EQ(b.cluster.node(NodeId{2})->state, NodeState::Down);
  b.take(b.cluster.relayed_heartbeats({.silent = {NodeId{1}, NodeId{7}}, .silent_for = 2s}, b.now));
  b.pass(500ms);
  EXPECT_EQ(b.cluster.node(NodeId{1})->state, NodeState::Suspect);
  b.take(b.cluster.relayed_heartbeats({.alive = {NodeId{1}}}, b.now));
  EXPECT_EQ(b.cluster.node(NodeId{1})->state, NodeState::Up);
}

TEST(Cluster, NodeThatCannotKillGetsNoJobs) {
  Bench b;
  b.add_nodes(1);
  b.unkillable = {NodeId{0}};
  const JobId job = b.submit(Bench::on_nodes(1));
  const AttemptId attempt = b.view(job).attempt;
  b.cancel(job);
  b.pass(6s);
  EXPECT_EQ(b.state(job), JobState::Cancelled);
  EXPECT_EQ(b.cluster.node(NodeId{0})->state, NodeState::Suspect);
  const JobId next = b.submit(Bench::on_nodes(1));
  EXPECT_EQ(b.state(next), JobState::Pending);
  b.say(NodeId{0}, base::Exited{attempt, {}, {}});
  EXPECT_EQ(b.cluster.node(NodeId{0})->state, NodeState::Up);
  EXPECT_EQ(b.state(next), JobState::Running);
}

TEST(Cluster, SuspendedJobsKeepPlaceWithoutTurns) {
  Bench b;
  b.add_nodes(1);
  const JobId job = b.submit(Bench::on_nodes(1));
  const JobId other = b.submit(Bench::on_nodes(1));
  b.pass(1s);
  b.expect_ok(b.cluster.suspend(job, b.now));
  b.pass(300ms);
  EXPECT_EQ(b.state(job), JobState::Suspended);
  EXPECT_EQ(b.view(other).share, 1.0);
  const auto plan = b.plan_of(NodeId{0});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->managed.size(), 2U);
  EXPECT_FALSE(next_switch(*plan, b.now));
  b.expect_ok(b.cluster.resume(job, b.now));
  b.pass(300ms);
  EXPECT_EQ(b.view(job).share, 0.5);
}

TEST(Cluster, QuantumTakesEffectAtTheNextBoundary) {
  Bench b;
  b.add_nodes(1);
  b.submit(Bench::on_nodes(1));
  b.submit(Bench::on_nodes(1));
  b.pass(1s);
  const base::Timetable before = b.timetables.at(NodeId{0});
  b.expect_ok(b.cluster.set(base::Setting::Quantum, Duration(50ms).count(), b.now));
  b.pass(10ms);
  const base::Timetable after = b.timetables.at(NodeId{0});
  EXPECT_EQ(after.cycle, 100ms);
  EXPECT_GT(after.epoch, before.epoch);
  EXPECT_EQ((after.start - before.start) % 100ms, 0ns) << "at a boundary of the old slices";
  EXPECT_LE(after.start, b.now + 120ms);
}

// The boundary is the same for all nodes and follows the quantum, whenever a node got its
// timetable.
TEST(Cluster, SwitchesSingleJobAtEveryBoundaryIfConfigured) {
  Bench b(ClusterConfig{.switch_always = true});
  b.add_nodes(3);
  b.submit(Bench::on_nodes(2));
  b.pass(130ms);
  b.submit(Bench::on_nodes(1));
  b.pass(1s);
  const auto next_on = [&](std::uint32_t node) {
    const auto next = next_switch(*b.plan_of(NodeId{node}), b.now);
    return next ? next->at - b.now : Duration{0};
  };
  EXPECT_GT(next_on(0), 0ms);
  EXPECT_LE(next_on(0), 100ms);
  EXPECT_EQ(next_on(0), next_on(1));
  EXPECT_EQ(next_on(0), next_on(2));
  b.expect_ok(b.cluster.set(base::Setting::Quantum, Duration(10s).count(), b.now));
  b.pass(100ms);
  EXPECT_GT(next_on(0), 9s);
  EXPECT_EQ(next_on(0), next_on(1));
  EXPECT_EQ(next_on(0), next_on(2));
}

TEST(Cluster, RefusesQuantaOutsideTheLimits) {
  Bench b;
  for (const Duration quantum :
       {Duration{0}, Duration{999us}, Duration{10s + 1ns}, Duration{1h}, Duration{-1s}}) {
    const auto refused = b.cluster.set(base::Setting::Quantum, quantum.count(), b.now);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message().find("a time from 1ms to 10s"), std::string::npos);
  }
}

TEST(Cluster, HeldJobWaitsUntilReleased) {
  Bench b;
  b.add_nodes(1);
  base::ResourceRequest request = Bench::on_nodes(1);
  request.held = true;
  const JobId job = b.submit(request);
  EXPECT_EQ(b.view(job).reasons.at(0), "held until it is released");
  b.expect_ok(b.cluster.release(job, b.now));
  EXPECT_EQ(b.state(job), JobState::Running);
}

TEST(Cluster, OverlayJobsTakeNoCores) {
  Bench b;
  b.add_nodes(2);
  base::ResourceRequest request = Bench::on_nodes(2);
  request.queue = base::Queue::Exclusive;
  b.submit(request);
  request = Bench::on_nodes(2);
  request.overlay = true;
  const JobId shell = b.submit(request);
  EXPECT_EQ(b.state(shell), JobState::Running);
  b.pass(1s);
  EXPECT_EQ(b.timetables.at(NodeId{0}).managed.size(), 1U);
  EXPECT_FALSE(b.cluster.suspend(shell, b.now));
  b.finish(shell);
  EXPECT_EQ(b.state(shell), JobState::Completed);
}

TEST(Cluster, StaleAndImpossibleReportsAreCountedAndHarmless) {
  Bench b;
  b.add_nodes(2);
  const JobId job = b.submit(Bench::on_nodes(1));
  const AttemptId attempt = b.view(job).attempt;
  const auto before = b.cluster.counters().stale_reports;
  const base::AttemptId stranger{77 * 256 + 1};
  b.say(NodeId{9}, base::Prepared{attempt});
  b.say(NodeId{1}, base::TaskEnded{attempt, {base::Rank{0}, 1, 0}});
  b.say(NodeId{0}, base::TaskEnded{attempt, {base::Rank{4000000000}, 1, 0}});
  b.say(NodeId{0}, base::TaskEnded{attempt, {base::Rank{0}, -5, 0}});
  b.say(NodeId{0}, base::Exited{stranger, {}, {}});
  b.say(NodeId{1}, base::Prepared{stranger});
  EXPECT_EQ(b.sent<base::KillTasks>().size(), 1U);
  EXPECT_EQ(b.cluster.counters().stale_reports, before + 6);
  EXPECT_EQ(b.state(job), JobState::Running);
}

// A reason is a line of a table, even on a cluster with thousands of nodes.
TEST(Cluster, ReasonsShortenLongNodeLists) {
  Bench b;
  b.add_nodes(99);
  for (std::uint32_t id = 3; id < 12; ++id) b.expect_ok(b.cluster.drain(NodeId{id}, "fan", b.now));
  const JobId job = b.submit(Bench::on_nodes(99));
  EXPECT_EQ(b.view(job).reasons.at(1), "drained: node[03-11]");
  for (std::uint32_t id = 13; id < 99; id += 2) {
    b.expect_ok(b.cluster.drain(NodeId{id}, "fan", b.now));
  }
  EXPECT_EQ(b.view(job).reasons.at(1).substr(0, 40), "drained: node[03-11,13,15,17,19,21,23,25");
}

TEST(Cluster, DrainedNodesKeepJobsAndGetNoNew) {
  Bench b;
  b.add_nodes(2);
  const JobId old = b.submit(Bench::on_nodes(2));
  b.expect_ok(b.cluster.drain(NodeId{1}, "disk", b.now));
  const JobId job = b.submit(Bench::on_nodes(2));
  EXPECT_EQ(b.state(old), JobState::Running);
  EXPECT_EQ(b.state(job), JobState::Pending);
  const auto reasons = b.view(job).reasons;
  EXPECT_EQ(reasons.at(0), "needs 2 nodes, 1 can be used");
  EXPECT_EQ(reasons.at(1), "drained: node01");
  b.expect_ok(b.cluster.resume_node(NodeId{1}, b.now));
  EXPECT_EQ(b.state(job), JobState::Running);
}

struct BadRequest {
  const char* name;
  void (*change)(base::ResourceRequest&);
  const char* says;
};

TEST(Cluster, CheckRefusesImpossibleRequestsWithOneClearLine) {
  Bench b;
  b.add_nodes(4, 2, 4_GiB);
  const BadRequest cases[] = {
      {"too many nodes", [](auto& r) { r.nodes = 5; }, "requested 5 nodes; the cluster has 4"},
      {"too many tasks per node",
       [](auto& r) { r.nodes = 2, r.tasks_per_node = 3, r.own_cores = true; },
       "requested 3 cores per node (3 tasks x 1); the largest node has 2 (node00): -N 3 -n 6 may "
       "fit"},
      {"too many cores per task", [](auto& r) { r.cpus_per_task = 4; },
       "requested 4 cores per node (1 task x 4); the largest node has 2 (node00)"},
      {"too many tasks", [](auto& r) { r.tasks = 9, r.own_cores = true; },
       "9 tasks with 1 core each do not fit"},
      {"too many on a core", [](auto& r) { r.nodes = 1, r.tasks = 257; },
       "requested 257 tasks per node; the largest node holds 256 (node00: 2 cores, 128 tasks per "
       "core)"},
      {"too much memory", [](auto& r) { r.memory_per_node = 5_GiB; },
       "requested 5G of memory per node; the largest node has 4G (node00)"},
      {"unknown node", [](auto& r) { r.only_nodes = {"node99"}; }, "no node node99"},
      {"fewer tasks than nodes", [](auto& r) { r.nodes = 3, r.tasks = 2; },
       "requested 3 nodes, but only 2 tasks"},
      {"node list too short", [](auto& r) { r.nodes = 2, r.only_nodes = {"node01"}; },
       "requested 2 nodes; the node lists leave 1"},
      {"weight 0", [](auto& r) { r.weight = 0; }, "weight 0 is outside"},
      {"no cores", [](auto& r) { r.cpus_per_task = 0; }, "a task needs at least 1 core"},
      {"hostile count", [](auto& r) { r.nodes = 4, r.tasks_per_node = 4000000000; },
       "more than the"},
  };
  for (const BadRequest& c : cases) {
    base::ResourceRequest request;
    c.change(request);
    const auto refused = b.cluster.check(request);
    ASSERT_FALSE(refused) << c.name;
    EXPECT_NE(refused.error().message().find(c.says), std::string::npos)
        << c.name << ": " << refused.error().message();
  }
}

}  // namespace
}  // namespace score::gang
