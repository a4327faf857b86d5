// An accepted job begins on all its nodes or ends with a reason, even if messages are late or lost.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

TEST(Launch, EndsIfANodeNeverBegins) {
  Bench b;
  b.add_nodes(3);
  b.stuck = {NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(3));
  b.pass(9s);
  EXPECT_EQ(b.state(job), JobState::Running);
  b.pass(2s);
  EXPECT_EQ(b.state(job), JobState::LaunchFailed);
  EXPECT_EQ(b.view(job).exit_code, 125);
  EXPECT_EQ(b.view(job).reasons.at(0), "no task began within 10.0s on node01");
}

TEST(Launch, BeginDeadlineCountsScheduledTime) {
  Bench b;
  b.add_nodes(1);
  const JobId other = b.submit(Bench::on_nodes(1));
  b.stuck = {NodeId{0}};
  const JobId job = b.submit(Bench::on_nodes(1));
  b.pass(15s);  // half of it was the other job's
  EXPECT_EQ(b.state(job), JobState::Running);
  b.expect_ok(b.cluster.suspend(job, b.now));
  b.pass(60s);
  EXPECT_EQ(b.state(job), JobState::Suspended);
  b.expect_ok(b.cluster.resume(job, b.now));
  b.pass(6s);
  EXPECT_EQ(b.state(job), JobState::LaunchFailed);
  EXPECT_EQ(b.state(other), JobState::Running);
}

TEST(Launch, EndsOverlayJobToo) {
  Bench b;
  b.add_nodes(1);
  b.stuck = {NodeId{0}};
  base::ResourceRequest request = Bench::on_nodes(1);
  request.overlay = true;
  const JobId job = b.submit(request);
  b.pass(11s);
  EXPECT_EQ(b.state(job), JobState::LaunchFailed);
}

TEST(Launch, DoesNotEndJobThatHasBegun) {
  Bench b;
  b.add_nodes(2);
  b.stuck = {NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(2));
  b.pass(9s);
  b.say(NodeId{1}, base::Started{b.view(job).attempt});
  b.pass(60s);
  EXPECT_EQ(b.state(job), JobState::Running);
}

// Tasks that do not exist yet use no processor.
TEST(Launch, JobIsNotIdleUntilBegunEverywhere) {
  Bench b;
  b.add_nodes(2);
  b.submit(Bench::on_nodes(2));  // needs the same cores
  b.stuck = {NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(2));
  const AttemptId attempt = b.view(job).attempt;
  const auto both_say_idle = [&] {
    for (const NodeId node : {NodeId{0}, NodeId{1}}) {
      b.say(node, base::ActivityChanged{attempt, {.idle = true}});
    }
  };
  b.pass(500ms);
  both_say_idle();
  EXPECT_EQ(b.view(job).activity, JobActivity::Busy);
  b.say(NodeId{1}, base::Started{attempt});
  b.pass(500ms);
  EXPECT_EQ(b.view(job).activity, JobActivity::Busy) << "said of tasks that were not there";
  both_say_idle();
  EXPECT_EQ(b.view(job).activity, JobActivity::Idle);
}

// A head that was stopped finds its deadlines due before it has read the answers to them.
JobId launched_by_a_head_that_stood_still(Bench& b) {
  b.add_nodes(2);
  b.deaf = {NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(2));
  b.now += 15s;
  b.take(b.cluster.tick(b.now));
  return job;
}

TEST(Launch, AnswersDuringHeadStallCount) {
  Bench b;
  const JobId job = launched_by_a_head_that_stood_still(b);
  EXPECT_EQ(b.state(job), JobState::Launching);
  b.say(NodeId{1}, base::Prepared{b.view(job).attempt});
  b.pass(1s);
  EXPECT_EQ(b.state(job), JobState::Running);
}

TEST(Launch, StalledHeadWaitsOneMoreSecond) {
  Bench b;
  const JobId job = launched_by_a_head_that_stood_still(b);
  b.pass(1500ms);
  EXPECT_EQ(b.state(job), JobState::LaunchFailed);
}

TEST(Launch, LostAnswerIsRequestedAgain) {
  Bench b;
  b.add_nodes(2);
  b.stuck = {NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(2));
  const AttemptId attempt = b.view(job).attempt;
  b.stuck.clear();
  b.take(b.cluster.node_disconnected(NodeId{1}, b.now));
  b.connect(NodeId{1}, {{attempt, base::AttemptPhase::Running, {}, {}}});
  EXPECT_EQ(b.sent<base::StartTasks>().size(), 1U);
  b.connect(NodeId{0}, {{attempt, base::AttemptPhase::Running, {}, {}}});
  EXPECT_TRUE(b.sent<base::StartTasks>().empty()) << "that one is known";
  b.pass(60s);
  EXPECT_EQ(b.state(job), JobState::Running);
}

// ---- a launch that a node could not carry out

TEST(Launch, IsRetriedIfJobIsNotTheCause) {
  Bench b;
  b.add_nodes(2);
  b.deaf = {NodeId{0}, NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(2));
  const AttemptId first = b.view(job).attempt;
  b.deaf.clear();
  b.say(NodeId{1}, base::Refused{first, 125, "no answer from the launcher", true});
  EXPECT_EQ(b.state(job), JobState::Running);
  EXPECT_GT(b.view(job).attempt, first);
  EXPECT_EQ(b.view(job).restarts, 0U) << "it has not run yet";
  EXPECT_EQ(b.view(job).relaunches, 1U);
}

TEST(Launch, IsRetriedOnlyAFewTimes) {
  Bench b;
  b.add_nodes(1);
  b.deaf = {NodeId{0}};
  const JobId job = b.submit(Bench::on_nodes(1));
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(b.state(job), JobState::Launching) << i;
    b.say(NodeId{0}, base::Refused{b.view(job).attempt, 125, "no answer from the launcher", true});
  }
  EXPECT_EQ(b.state(job), JobState::LaunchFailed);
  EXPECT_EQ(b.view(job).reasons.at(0), "node00: no answer from the launcher");
}

TEST(Launch, IsRetriedAfterEarlyDeathOfShepherd) {
  Bench b;
  b.add_nodes(2);
  b.deaf = {NodeId{1}};
  const JobId job = b.submit(Bench::on_nodes(2));
  b.deaf.clear();
  b.say(NodeId{0}, base::Exited{b.view(job).attempt, {}, "its shepherd died"});
  EXPECT_EQ(b.state(job), JobState::Running);
}

TEST(Launch, IsRetriedOnOtherNodesWithoutRequeue) {
  Bench b;
  b.add_nodes(2);
  b.deaf = {NodeId{0}};
  const JobId job = b.submit(Bench::on_nodes(1));
  ASSERT_EQ(b.view(job).nodes.at(0), NodeId{0});
  b.silent = {NodeId{0}};
  b.pass(12s);
  EXPECT_EQ(b.state(job), JobState::Running);
  EXPECT_EQ(b.view(job).nodes.at(0), NodeId{1});
}

TEST(Launch, IsNotRetriedAfterCancel) {
  Bench b;
  b.add_nodes(2);
  b.deaf = {NodeId{0}, NodeId{1}};
  b.unkillable = {NodeId{0}};
  const JobId job = b.submit(Bench::on_nodes(2));
  b.say(NodeId{1}, base::Refused{b.view(job).attempt, 125, "no answer from the launcher", true});
  ASSERT_EQ(b.state(job), JobState::Completing);
  EXPECT_TRUE(b.view(job).is_untried);
  b.cancel(job);
  EXPECT_FALSE(b.view(job).is_untried);
  b.say(NodeId{0}, base::Exited{b.view(job).attempt, {}, {}});
  EXPECT_EQ(b.state(job), JobState::Cancelled);
}

// The node is known and not connected.
JobId recover_waiting_job(Bench& b) {
  b.infos[NodeId{0}] = {"node00", 1, 8_GiB};
  EXPECT_TRUE(b.cluster.add_node(NodeId{0}, "node00"));
  RecoveredJob waiting;
  waiting.id = JobId{7};
  waiting.request = Bench::on_nodes(1);
  b.take(b.cluster.recover({waiting}, b.now));
  return waiting.id;
}

// The killed head had launched the job and not stored that; the node repeats its report after its
// hello.
TEST(Launch, AttemptNumbersAreUnique) {
  Bench b;
  const JobId job = recover_waiting_job(b);
  const AttemptId lost = base::make_attempt(job, 1);
  b.connect(NodeId{0}, {{lost, base::AttemptPhase::Exited, {}, {}}});
  b.say(NodeId{0}, base::Exited{lost, {}, {}});
  EXPECT_EQ(b.state(job), JobState::Running);
  EXPECT_EQ(b.view(job).attempt, base::make_attempt(job, 2));
}

TEST(Launch, NodeCannotUseUpAttemptNumbers) {
  for (const std::uint64_t claimed : {5U, 100U, 253U, 254U, 255U}) {
    Bench b;
    const JobId job = recover_waiting_job(b);
    const AttemptId many = base::make_attempt(job, claimed);
    b.connect(NodeId{0}, {{many, base::AttemptPhase::Exited, {}, {}}});
    EXPECT_EQ(b.view(job).attempt, base::make_attempt(job, 1)) << claimed;
  }
}

}  // namespace
}  // namespace score::gang
