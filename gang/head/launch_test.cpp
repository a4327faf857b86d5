// An accepted job begins on all its nodes or ends with a reason, whatever is late or lost.
#include "gang/head/cluster_bench.hpp"

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

TEST(Launch, CountsTheJobsOwnTimeForThat) {
  Bench b;
  b.add_nodes(1);
  const JobId other = b.submit(Bench::on_nodes(1));
  b.stuck = {NodeId{0}};
  const JobId job = b.submit(Bench::on_nodes(1));
  b.pass(15s);  // half of it was the other's
  EXPECT_EQ(b.state(job), JobState::Running);
  b.expect_ok(b.cluster.suspend(job, b.now));
  b.pass(60s);
  EXPECT_EQ(b.state(job), JobState::Suspended);
  b.expect_ok(b.cluster.resume(job, b.now));
  b.pass(6s);
  EXPECT_EQ(b.state(job), JobState::LaunchFailed);
  EXPECT_EQ(b.state(other), JobState::Running);
}

TEST(Launch, EndsAJobOutsideTheTimetableToo) {
  Bench b;
  b.add_nodes(1);
  b.stuck = {NodeId{0}};
  base::ResourceRequest request = Bench::on_nodes(1);
  request.overlay = true;
  const JobId job = b.submit(request);
  b.pass(11s);
  EXPECT_EQ(b.state(job), JobState::LaunchFailed);
}

TEST(Launch, LeavesAJobAloneThatHasBegun) {
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
TEST(Launch, NoJobIsIdleBeforeItHasBegunEverywhere) {
  Bench b;
  b.add_nodes(2);
  b.submit(Bench::on_nodes(2));  // wants the same cores
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

TEST(Launch, AnswersThatCameWhileTheHeadStoodStillCount) {
  Bench b;
  const JobId job = launched_by_a_head_that_stood_still(b);
  EXPECT_EQ(b.state(job), JobState::Launching);
  b.say(NodeId{1}, base::Prepared{b.view(job).attempt});
  b.pass(1s);
  EXPECT_EQ(b.state(job), JobState::Running);
}

TEST(Launch, AHeadThatStoodStillWaitsForOneMoreSecondOnly) {
  Bench b;
  const JobId job = launched_by_a_head_that_stood_still(b);
  b.pass(1500ms);
  EXPECT_EQ(b.state(job), JobState::LaunchFailed);
}

TEST(Launch, ALostAnswerIsAskedForAgain) {
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

}  // namespace
}  // namespace score::gang
