// Tests steps inside the cores of a job that is an allocation.
#include "gang/matrix/channels.hpp"
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

base::ResourceRequest allocation(std::uint32_t nodes, std::uint32_t tasks_per_node = 1) {
  auto request = Bench::on_nodes(nodes, tasks_per_node);
  request.allocation = true;
  return request;
}

base::ResourceRequest step_of(JobId job, std::uint32_t tasks, std::uint32_t nodes = 0) {
  base::ResourceRequest request;
  request.inside = job;
  request.tasks = tasks;
  request.nodes = nodes;
  return request;
}

// Ends the script of the job.
void end_script(Bench& b, JobId job, int code = 0) {
  const JobView v = b.view(job);
  b.say(v.nodes.at(0), base::Exited{v.attempt, {{base::Rank{0}, code, 0}}, {}});
}

base::Error refusal(Bench& b, const base::ResourceRequest& request, UserId user = UserId{1000}) {
  const auto refused = b.cluster.submit(JobId{1'000 + b.last_job}, user, request, b.now);
  EXPECT_FALSE(refused);
  if (refused) return base::fail(base::Errc::Exists, "it was accepted");
  return refused.error();
}

TEST(Steps, OnlyFirstNodeOfAllocationStartsItsTask) {
  Bench b;
  b.add_nodes(3, 2);
  const JobId job = b.submit(allocation(3, 2));
  b.pass(100ms);
  EXPECT_EQ(b.state(job), JobState::Running);
  EXPECT_EQ(b.view(job).nodes.size(), 3U) << "it holds all of them";
  end_script(b, job, 3);
  EXPECT_EQ(b.state(job), JobState::Failed);
  EXPECT_EQ(b.view(job).exit_code, 3);
}

// A node is told of the end, because its hooks run then.
TEST(Steps, AllNodesForgetTheAllocationIfHooksRun) {
  for (const Duration epilog : {Duration(0), Duration(1s)}) {
    ClusterConfig config;
    config.epilog_limit = epilog;
    Bench b(config);
    b.add_nodes(3, 2);
    const JobId job = b.submit(allocation(3, 2));
    b.pass(100ms);
    end_script(b, job);
    EXPECT_EQ(b.sent<base::ForgetTasks>().size(), epilog == Duration(0) ? 1U : 3U);
  }
}

TEST(Steps, RunTogetherWhenTheirJobRuns) {
  Bench b;
  b.add_nodes(2, 2);
  const JobId job = b.submit(allocation(2, 2));
  const JobId other = b.submit(Bench::on_nodes(2, 2));
  const JobId first = b.submit(step_of(job, 2, 2));
  const JobId second = b.submit(step_of(job, 2, 2));
  b.pass(1s);
  EXPECT_EQ(b.state(first), JobState::Running);
  EXPECT_EQ(b.state(second), JobState::Running);
  EXPECT_NE(b.view(first).cores.at(0), b.view(second).cores.at(0));
  bool has_run = false;
  for (Duration at = 0ms; at < 400ms; at += 7ms) {
    const bool runs = b.runs(NodeId{0}, job, b.now + at);
    has_run |= runs;
    EXPECT_EQ(b.runs(NodeId{0}, first, b.now + at), runs);
    EXPECT_EQ(b.runs(NodeId{1}, second, b.now + at), runs);
    EXPECT_NE(b.runs(NodeId{0}, first, b.now + at), b.runs(NodeId{0}, other, b.now + at));
  }
  EXPECT_TRUE(has_run);
  EXPECT_EQ(b.view(first).slot, b.view(job).slot);
}

TEST(Steps, WaitForCoresUnlessTheyOverlap) {
  Bench b;
  b.add_nodes(1, 4);
  const JobId job = b.submit(allocation(1, 4));
  const JobId first = b.submit(step_of(job, 3));
  const JobId second = b.submit(step_of(job, 2));
  EXPECT_EQ(b.state(second), JobState::Pending);
  ASSERT_FALSE(b.view(second).reasons.empty());
  EXPECT_EQ(b.view(second).reasons.front(),
            fmt::format("other steps use the cores of job {}", job));
  auto overlapping = step_of(job, 4);
  overlapping.overlap = true;
  EXPECT_EQ(b.state(b.submit(overlapping)), JobState::Running);
  b.pass(100ms);
  b.finish(first);
  b.pass(10ms);
  EXPECT_EQ(b.state(first), JobState::Completed);
  EXPECT_EQ(b.state(second), JobState::Running);
}

TEST(Steps, EndWithTheirJobWhichEndsAfterThem) {
  Bench b;
  b.add_nodes(2, 2);
  const JobId job = b.submit(allocation(2, 2));
  const JobId running = b.submit(step_of(job, 4));
  const JobId waiting = b.submit(step_of(job, 1));
  b.pass(100ms);
  b.unkillable = {NodeId{1}};
  end_script(b, job);
  EXPECT_EQ(b.state(waiting), JobState::Cancelled);
  EXPECT_EQ(b.state(running), JobState::Completing);
  EXPECT_EQ(b.state(job), JobState::Completing) << "its cores are still in use";
  b.say(NodeId{1}, base::Exited{b.view(running).attempt, {}, {}});
  EXPECT_EQ(b.state(running), JobState::Cancelled);
  EXPECT_EQ(b.state(job), JobState::Completed);
}

TEST(Steps, AreCancelledAloneAndWithTheirJob) {
  Bench b;
  b.add_nodes(2, 2);
  const JobId job = b.submit(allocation(2, 2));
  const JobId first = b.submit(step_of(job, 2));
  const JobId second = b.submit(step_of(job, 2));
  b.pass(100ms);
  b.cancel(first);
  EXPECT_EQ(b.state(first), JobState::Cancelled);
  EXPECT_EQ(b.state(second), JobState::Running);
  b.cancel(job);
  EXPECT_EQ(b.state(second), JobState::Cancelled);
  EXPECT_EQ(b.state(job), JobState::Cancelled);
}

TEST(Steps, AreRefusedIfTheyCanNeverRun) {
  Bench b;
  b.add_nodes(2, 2);
  const JobId job = b.submit(allocation(1, 2));
  const JobId plain = b.submit(Bench::on_nodes(1, 1));
  b.pass(10ms);
  EXPECT_TRUE(refusal(b, step_of(job, 3)).is(base::Errc::TooLarge));
  EXPECT_TRUE(refusal(b, step_of(job, 2, 2)).is(base::Errc::TooLarge));
  EXPECT_TRUE(refusal(b, step_of(plain, 1)).is(base::Errc::WrongState));
  EXPECT_TRUE(refusal(b, step_of(JobId{777}, 1)).is(base::Errc::NotFound));
  EXPECT_TRUE(refusal(b, step_of(job, 1), UserId{1001}).is(base::Errc::Denied));
  end_script(b, job);
  EXPECT_TRUE(refusal(b, step_of(job, 1)).is(base::Errc::WrongState));
}

TEST(Steps, AreFrozenWhileTheirJobIsSuspended) {
  Bench b;
  b.add_nodes(1, 2);
  const JobId job = b.submit(allocation(1, 2));
  const JobId step = b.submit(step_of(job, 2));
  b.pass(1s);
  EXPECT_TRUE(b.runs(NodeId{0}, step, b.now));
  EXPECT_FALSE(b.cluster.suspend(step, b.now));
  b.expect_ok(b.cluster.suspend(job, b.now));
  b.pass(1s);
  EXPECT_FALSE(b.runs(NodeId{0}, step, b.now));
  b.expect_ok(b.cluster.resume(job, b.now));
  b.pass(1s);
  EXPECT_TRUE(b.runs(NodeId{0}, step, b.now));
}

TEST(Steps, BusyStepKeepsSlicesOfItsJob) {
  ClusterConfig config;
  config.idle_detection = true;
  Bench b(config);
  b.add_nodes(1, 1);
  const JobId job = b.submit(allocation(1));
  const JobId other = b.submit(Bench::on_nodes(1));
  const JobId step = b.submit(step_of(job, 1));
  b.pass(1s);
  const base::Activity idle{true, false, 0, 0};
  b.say(NodeId{0}, base::ActivityChanged{b.view(job).attempt, idle});
  b.pass(1s);
  EXPECT_FALSE(b.view(job).background);
  EXPECT_EQ(b.view(job).activity, JobActivity::Busy) << "its step is";
  EXPECT_GT(b.view(step).share, 0.4);
  b.say(NodeId{0}, base::ActivityChanged{b.view(step).attempt, idle});
  b.pass(1s);
  EXPECT_TRUE(b.view(job).background);
  EXPECT_TRUE(b.view(step).background);
  EXPECT_EQ(b.view(other).share, 1);
}

TEST(Steps, FailWithTheirJobAfterLostNode) {
  Bench b;
  b.add_nodes(2, 1);
  const JobId job = b.submit(allocation(2));
  const JobId step = b.submit(step_of(job, 2));
  b.pass(1s);
  b.silent.insert(NodeId{1});
  b.pass(10s);
  EXPECT_EQ(b.state(job), JobState::NodeFailed) << "its script was on the other node";
  EXPECT_TRUE(base::is_final(b.state(step)));
}

TEST(Steps, RequeuedJobBeginsWithoutSteps) {
  Bench b;
  b.add_nodes(3, 1);
  auto request = allocation(2);
  request.requeue = base::Requeue::Yes;
  const JobId job = b.submit(request);
  const JobId step = b.submit(step_of(job, 2));
  b.pass(1s);
  b.silent.insert(b.view(job).nodes.at(1));
  b.pass(10s);
  EXPECT_TRUE(base::is_final(b.state(step)));
  EXPECT_EQ(b.state(job), JobState::Running);
  EXPECT_EQ(b.view(job).restarts, 1U);
}

TEST(Steps, ContinueAfterHeadRestart) {
  Bench old;
  old.add_nodes(2, 2);
  const JobId job = old.submit(allocation(2, 2));
  const JobId running = old.submit(step_of(job, 4));
  const JobId waiting = old.submit(step_of(job, 1));
  old.pass(1s);
  const JobView script = old.view(job);
  const JobView step = old.view(running);
  Bench b;
  for (std::uint32_t i = 0; i < 2; ++i) {
    b.infos[NodeId{i}] = old.infos[NodeId{i}];
    ASSERT_TRUE(b.cluster.add_node(NodeId{i}, b.infos[NodeId{i}].name));
  }
  b.now = old.now + 1s;
  b.last_job = old.last_job;
  b.take(b.cluster.recover({stored_job(script), stored_job(step), stored_job(old.view(waiting))},
                           b.now));
  using base::AttemptPhase;
  b.connect(NodeId{0},
            {{script.attempt, AttemptPhase::Running, {}, {}},
             {step.attempt, AttemptPhase::Running, {}, {}}},
            Epoch{5});
  b.connect(NodeId{1}, {{step.attempt, AttemptPhase::Running, {}, {}}}, Epoch{5});
  b.pass(1s);
  EXPECT_EQ(b.state(job), JobState::Running);
  EXPECT_EQ(b.state(running), JobState::Running);
  EXPECT_EQ(b.state(waiting), JobState::Pending);
  EXPECT_TRUE(b.runs(NodeId{1}, running, b.now));
  b.finish(running);
  b.pass(10ms);
  EXPECT_EQ(b.state(waiting), JobState::Running);
  end_script(b, job);
  EXPECT_EQ(b.state(job), JobState::Completed);
}

TEST(Steps, OfOneJobNeverShareANetworkChannel) {
  Channels channels(2);
  const NetworkPlace first{{NodeId{0}}, {{0, 1}}, JobId{7}};
  const NetworkPlace same_cores{{NodeId{0}}, {{0, 1}}, JobId{7}};
  const auto one = channels.assign(AttemptId{1}, first);
  const auto other = channels.assign(AttemptId{2}, same_cores);
  ASSERT_TRUE(one && other);
  EXPECT_NE(*one, *other);
  EXPECT_FALSE(channels.assign(AttemptId{3}, same_cores)) << "there are two";
  EXPECT_TRUE(channels.assign(AttemptId{4}, NetworkPlace{{NodeId{0}}, {{0}}, JobId{8}}));
}

}  // namespace
}  // namespace score::gang
