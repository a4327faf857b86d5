// An accepted job begins on all its nodes or ends with a reason, even if messages are late or lost.
#include "tests/support/gang/cluster_bench.hpp"

#include <array>

namespace score::gang {
namespace {

// The tasks of the other two nodes have run.
TEST(Launch, EndsIfOneNodeNeverBegins) {
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

TEST(Launch, PartlyStartedJobEndsBeforeItsRestart) {
  Bench b;
  b.add_nodes(3);
  b.stuck = {NodeId{1}};
  b.unkillable = {NodeId{2}};
  auto request = Bench::on_nodes(3);
  request.requeue = base::Requeue::Yes;
  const JobId job = b.submit(request);
  const AttemptId first = b.view(job).attempt;
  b.pass(11s);
  EXPECT_EQ(b.state(job), JobState::Completing);
  b.stuck.clear();
  b.say(NodeId{2}, base::Exited{first, {{base::Rank{2}, 0, 9}}, {}});
  EXPECT_EQ(b.state(job), JobState::Running);
  EXPECT_EQ(b.view(job).restarts, 1U);
  EXPECT_EQ(b.view(job).relaunches, 0U);
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
  EXPECT_EQ(b.view(job).relaunches, 0U);
  b.pass(6s);
  EXPECT_EQ(b.view(job).relaunches, 1U);
  EXPECT_EQ(b.state(other), JobState::Running);
}

TEST(Launch, IsRepeatedForOverlayJobToo) {
  Bench b;
  b.add_nodes(1);
  b.stuck = {NodeId{0}};
  base::ResourceRequest request = Bench::on_nodes(1);
  request.overlay = true;
  const JobId job = b.submit(request);
  b.pass(11s);
  EXPECT_EQ(b.state(job), JobState::Running);
  EXPECT_EQ(b.view(job).relaunches, 1U);
}

TEST(Launch, IsRepeatedForStepToo) {
  Bench b;
  b.add_nodes(1, 2);
  auto request = Bench::on_nodes(1, 2);
  request.allocation = true;
  const JobId job = b.submit(request);
  b.deaf = {NodeId{0}};
  auto inside = Bench::on_nodes(1);
  inside.inside = job;
  const JobId step = b.submit(inside);
  b.deaf.clear();
  b.say(NodeId{0}, base::Refused{b.view(step).attempt, 125, "cannot fork", true});
  EXPECT_EQ(b.state(step), JobState::Running);
  EXPECT_EQ(b.view(step).relaunches, 1U);
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
  EXPECT_EQ(b.view(job).relaunches, 1U);
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

void refuse_for_lack_of_space(Bench& b, JobId job) {
  b.say(NodeId{0}, base::Refused{b.view(job).attempt, 125, "No space left on device", true});
}

TEST(Launch, IsRepeatedUpToTheLimitOfRequeues) {
  for (const std::uint32_t most : {0U, 2U, 3U}) {
    ClusterConfig config;
    config.max_requeues = most;
    Bench b(config);
    b.add_nodes(1);
    b.deaf = {NodeId{0}};
    const JobId job = b.submit(Bench::on_nodes(1));
    for (std::uint32_t i = 0; i < most; ++i) {
      ASSERT_EQ(b.state(job), JobState::Launching) << i;
      refuse_for_lack_of_space(b, job);
      EXPECT_EQ(b.view(job).relaunches, i + 1);
      b.pass(i == 0 ? 0s : 4s * (i * i));
    }
    refuse_for_lack_of_space(b, job);
    EXPECT_EQ(b.state(job), JobState::LaunchFailed);
    EXPECT_EQ(b.view(job).reasons.at(0), "node00: No space left on device");
  }
}

// Returns a job whose second launch has failed.
JobId paused_job(Bench& b) {
  b.add_nodes(1);
  b.deaf = {NodeId{0}};
  const JobId job = b.submit(Bench::on_nodes(1));
  refuse_for_lack_of_space(b, job);
  refuse_for_lack_of_space(b, job);
  b.deaf.clear();
  return job;
}

TEST(Launch, PausedJobSaysWhyItWaits) {
  Bench b;
  const JobId job = paused_job(b);
  EXPECT_EQ(b.state(job), JobState::Pending);
  EXPECT_EQ(b.view(job).reasons.at(0),
            "its launch failed and will be repeated soon: node00: No space left on device");
  b.pass(5s);
  EXPECT_EQ(b.state(job), JobState::Running);
}

TEST(Launch, PausedJobCanBeHeldReleasedAndCancelled) {
  Bench b;
  const JobId job = paused_job(b);
  b.expect_ok(b.cluster.hold(job, b.now));
  b.expect_ok(b.cluster.release(job, b.now));
  EXPECT_EQ(b.state(job), JobState::Pending);
  b.expect_ok(b.cluster.hold(job, b.now));
  b.pass(10s);
  EXPECT_EQ(b.state(job), JobState::Pending);
  b.expect_ok(b.cluster.release(job, b.now));
  EXPECT_EQ(b.state(job), JobState::Running);
  Bench other;
  const JobId cancelled = paused_job(other);
  other.cancel(cancelled);
  other.pass(10s);
  EXPECT_EQ(other.state(cancelled), JobState::Cancelled);
}

struct Failure {
  const char* what;
  bool is_of_machine;
  void (*act)(Bench& b, AttemptId attempt);
};

// Every way in which an attempt can end before a task of it has run.
constexpr std::array kFailures = {
    Failure{"no such program", false,
            [](Bench& b, AttemptId id) {
              b.say(NodeId{0}, base::Refused{id, 127, "not found"});
            }},
    Failure{"no permission, bad directory", false,
            [](Bench& b, AttemptId id) {
              b.say(NodeId{0}, base::Refused{id, 126, "denied"});
            }},
    Failure{"no space, no process", true,
            [](Bench& b, AttemptId id) {
              b.say(NodeId{0}, base::Refused{id, 125, "cannot fork", true});
            }},
    Failure{"its shepherd died while it prepared", true,
            [](Bench& b, AttemptId id) {
              b.say(NodeId{0}, base::Exited{id, {}, "it died"});
            }},
    Failure{"the node answers late", true, [](Bench& b, AttemptId) { b.pass(9s); }},
    Failure{"the node is silent", true,
            [](Bench& b, AttemptId) {
              b.silent = {NodeId{0}};
              b.pass(9s);
            }},
    Failure{"its connection broke", true,
            [](Bench& b, AttemptId) {
              b.take(b.cluster.node_disconnected(NodeId{0}, b.now));
              b.pass(9s);
            }},
    Failure{"its daemon was restarted", true,
            [](Bench& b, AttemptId) {
              b.take(b.cluster.node_disconnected(NodeId{0}, b.now));
              b.connect(NodeId{0});
              b.pass(9s);
            }},
    Failure{"its shepherd died before the start", true,
            [](Bench& b, AttemptId id) {
              b.say(NodeId{0}, base::Prepared{id});
              b.say(NodeId{0}, base::Exited{id, {}, "it died"});
            }},
    Failure{"no task began", true,
            [](Bench& b, AttemptId id) {
              b.say(NodeId{0}, base::Prepared{id});
              b.pass(11s);
            }},
};

TEST(Launch, EachFailureHasItsFault) {
  for (const Failure& failure : kFailures) {
    Bench b;
    b.add_nodes(1);
    b.deaf = b.stuck = {NodeId{0}};
    const JobId job = b.submit(Bench::on_nodes(1));
    failure.act(b, b.view(job).attempt);
    EXPECT_EQ(b.view(job).relaunches, failure.is_of_machine ? 1U : 0U) << failure.what;
    EXPECT_EQ(b.state(job) == JobState::LaunchFailed, !failure.is_of_machine) << failure.what;
    EXPECT_EQ(b.view(job).restarts, 0U) << failure.what;
  }
}

// A node that is lost after the order to start may have begun the tasks.
TEST(Launch, LostNodeMayHaveRunTheJob) {
  Bench b;
  b.add_nodes(2);
  b.stuck = {NodeId{0}};
  const JobId job = b.submit(Bench::on_nodes(1));
  b.silent = {NodeId{0}};
  b.pass(12s);
  EXPECT_EQ(b.state(job), JobState::NodeFailed);
  EXPECT_EQ(b.view(job).relaunches, 0U);
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
