// Tests jobs that lost a node and start again.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

base::ResourceRequest requeued(std::uint32_t nodes) {
  auto request = Bench::on_nodes(nodes);
  request.requeue = base::Requeue::Yes;
  return request;
}

// Makes the first node of a running job silent for good, and returns it.
NodeId lose_a_node(Bench& b, JobId job) {
  const NodeId lost = b.view(job).nodes.at(0);
  b.silent.insert(lost);
  b.pass(4500ms);
  return lost;
}

TEST(Requeue, RunsOnOtherNodesAsANewAttempt) {
  Bench b;
  b.add_nodes(3);
  const JobId job = b.submit(requeued(2));
  b.pass(1s);
  const AttemptId first = b.view(job).attempt;
  const NodeId lost = lose_a_node(b, job);
  const JobView v = b.view(job);
  EXPECT_EQ(v.state, JobState::Running);
  EXPECT_EQ(v.restarts, 1U);
  EXPECT_GT(v.attempt, first);
  EXPECT_EQ(std::count(v.nodes.begin(), v.nodes.end(), lost), 0);
  EXPECT_LT(v.scheduled, 1s) << "the lost attempt does not count";
  b.finish(job);
  EXPECT_EQ(b.state(job), JobState::Completed);
  EXPECT_TRUE(b.view(job).reasons.empty());
}

TEST(Requeue, NewAttemptKnowsItsRequeueCount) {
  Bench b;
  b.add_nodes(2);
  const JobId job = b.submit(requeued(1));
  const NodeId lost = lose_a_node(b, job);
  b.silent.erase(lost);
  b.deaf = {NodeId{0}, NodeId{1}};
  const NodeId other = b.view(job).nodes.at(0);
  b.take(b.cluster.node_connected(other, {b.infos.at(other), {}, {}}, b.now));
  const auto sent = b.sent<base::PrepareTasks>();
  ASSERT_EQ(sent.size(), 1U) << "it came back without the job";
  EXPECT_EQ(sent[0].second.placed.restarts, 2U);
}

TEST(Requeue, WaitsInItsOldPlaceWithoutNodes) {
  Bench b;
  b.add_nodes(2);
  const JobId job = b.submit(requeued(2));
  b.pass(100ms);
  const NodeId lost = lose_a_node(b, job);
  EXPECT_EQ(b.state(job), JobState::Pending);
  EXPECT_TRUE(b.view(job).nodes.empty());
  EXPECT_FALSE(b.view(job).reasons.empty());
  b.silent.erase(lost);
  b.connect(lost);
  b.pass(10ms);
  EXPECT_EQ(b.state(job), JobState::Running);
}

TEST(Requeue, HappensAtMostAsOftenAsAllowed) {
  ClusterConfig config;
  config.max_requeues = 2;
  Bench b(config);
  b.add_nodes(4);
  const JobId job = b.submit(requeued(1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(b.state(job), JobState::Running) << i;
    lose_a_node(b, job);
  }
  EXPECT_EQ(b.state(job), JobState::NodeFailed);
  EXPECT_EQ(b.view(job).restarts, 2U);
}

TEST(Requeue, HappensOnlyOnRequestAfterALostNode) {
  Bench b;
  b.add_nodes(3);
  const JobId failing = b.submit(requeued(1));
  b.finish(failing, 3);
  EXPECT_EQ(b.state(failing), JobState::Failed);
  for (const auto wish : {base::Requeue::Default, base::Requeue::No}) {
    auto request = Bench::on_nodes(1);
    request.requeue = wish;
    const JobId job = b.submit(request);
    lose_a_node(b, job);
    EXPECT_EQ(b.state(job), JobState::NodeFailed);
  }
}

TEST(Requeue, CancelDuringCleanupEndsTheJob) {
  Bench b;
  b.add_nodes(3);
  b.unkillable = {NodeId{1}};
  const JobId job = b.submit(requeued(2));
  b.pass(100ms);
  ASSERT_EQ(b.view(job).nodes.at(1), NodeId{1});
  b.silent.insert(NodeId{0});
  b.pass(4500ms);
  ASSERT_EQ(b.state(job), JobState::Completing);
  b.cancel(job);
  b.pass(6s);
  EXPECT_EQ(b.state(job), JobState::Cancelled);
  EXPECT_EQ(b.view(job).restarts, 0U);
}

TEST(Requeue, NodeThatDoesNotKillDelaysUntilDeadline) {
  Bench b;
  b.add_nodes(4);
  b.unkillable = {NodeId{0}};
  const JobId job = b.submit(requeued(2));
  b.pass(100ms);
  ASSERT_EQ(b.view(job).nodes, (std::vector{NodeId{0}, NodeId{1}}));
  b.silent.insert(NodeId{1});
  b.pass(4500ms);
  ASSERT_EQ(b.state(job), JobState::Completing);
  b.pass(6s);
  EXPECT_EQ(b.state(job), JobState::Running);
  EXPECT_EQ(b.view(job).restarts, 1U);
  EXPECT_EQ(b.view(job).nodes, (std::vector{NodeId{2}, NodeId{3}}));
}

TEST(Requeue, ChangedLimitAppliesToExistingJobs) {
  Bench b;
  b.add_nodes(4);
  const JobId job = b.submit(requeued(1));
  lose_a_node(b, job);
  b.expect_ok(b.cluster.set(base::Setting::MaxRequeues, 1, b.now));
  EXPECT_EQ(b.state(job), JobState::Running);
  lose_a_node(b, job);
  EXPECT_EQ(b.state(job), JobState::NodeFailed);
}

// A head that crashes in each launch of a job launches it again each time it starts.
TEST(Requeue, JobEndsWithoutUniqueAttemptNumbers) {
  constexpr std::uint64_t kLast = base::kAttemptsPerJob - 1;
  for (const auto state : {JobState::Pending, JobState::Launching}) {
    for (const bool is_last : {false, true}) {
      Bench b;
      b.add_nodes(1);
      RecoveredJob old;
      old.id = JobId{7};
      old.request = requeued(1);
      old.state = state;
      old.attempt = base::make_attempt(old.id, is_last ? kLast : kLast - 1);
      b.take(b.cluster.recover({old}, b.now));
      b.pass(10ms);
      EXPECT_EQ(b.state(old.id), is_last ? JobState::LaunchFailed : JobState::Running);
      EXPECT_EQ(base::job_of(b.view(old.id).attempt), old.id);
      if (!is_last) continue;
      EXPECT_EQ(b.view(old.id).reasons.at(0), "it was launched 255 times, which is the limit");
    }
  }
}

TEST(Requeue, RestartedHeadContinuesTheCount) {
  ClusterConfig config;
  config.max_requeues = 2;
  Bench b(config);
  b.add_nodes(2);
  RecoveredJob old;
  old.id = JobId{7};
  old.request = requeued(1);
  old.state = JobState::Pending;
  old.attempt = base::make_attempt(old.id, 5);
  old.restarts = 2;
  b.take(b.cluster.recover({old}, b.now));
  b.pass(10ms);
  ASSERT_EQ(b.state(old.id), JobState::Running);
  EXPECT_EQ(b.view(old.id).restarts, 2U);
  lose_a_node(b, old.id);
  EXPECT_EQ(b.state(old.id), JobState::NodeFailed);
}

// ---- by request

TEST(Requeue, RequestReturnsTheJobToTheQueue) {
  ClusterConfig config;
  config.max_requeues = 1;
  Bench b(config);
  b.add_nodes(2);
  const JobId job = b.submit(requeued(1));
  for (std::uint32_t i = 1; i <= 3; ++i) {
    b.pass(1s);
    b.expect_ok(b.cluster.requeue(job, "requested by alice", b.now));
    EXPECT_EQ(b.state(job), JobState::Running) << "its tasks may use their grace";
    b.expect_ok(b.cluster.end_attempt(job, b.now));
    b.pass(10ms);
    EXPECT_EQ(b.state(job), JobState::Running);
    EXPECT_EQ(b.view(job).restarts, i);
    EXPECT_EQ(b.view(job).asked_restarts, i);
    EXPECT_EQ(b.view(job).lost, "requested by alice");
    EXPECT_LT(b.view(job).scheduled, 1s);
  }
  lose_a_node(b, job);
  EXPECT_EQ(b.state(job), JobState::Running) << "requests do not count against max_requeues";
  lose_a_node(b, job);
  EXPECT_EQ(b.state(job), JobState::NodeFailed);
}

TEST(Requeue, AnyEndAfterTheRequestRequeues) {
  for (const int code : {0, 3}) {
    Bench b;
    b.add_nodes(2);
    const JobId job = b.submit(requeued(2));
    b.pass(100ms);
    b.expect_ok(b.cluster.requeue(job, "requested by alice", b.now));
    b.finish(job, code);
    b.pass(10ms);
    EXPECT_EQ(b.state(job), JobState::Running);
    EXPECT_EQ(b.view(job).restarts, 1U);
    b.finish(job, code);
    EXPECT_EQ(b.state(job), code == 0 ? JobState::Completed : JobState::Failed);
  }
}

TEST(Requeue, CancelAfterTheRequestEndsTheJob) {
  Bench b;
  b.add_nodes(2);
  b.unkillable = {NodeId{0}};
  const JobId job = b.submit(requeued(1));
  b.pass(100ms);
  b.expect_ok(b.cluster.requeue(job, "requested by alice", b.now));
  b.expect_ok(b.cluster.end_attempt(job, b.now));
  ASSERT_EQ(b.state(job), JobState::Completing);
  b.cancel(job);
  b.pass(6s);
  EXPECT_EQ(b.state(job), JobState::Cancelled);
  EXPECT_EQ(b.view(job).restarts, 0U);
}

TEST(Requeue, RequestIsRefusedWithItsReason) {
  Bench b;
  b.add_nodes(1);
  const auto refusal = [&b](JobId job) {
    const auto done = b.cluster.requeue(job, "", b.now);
    return done ? "" : done.error().context();
  };
  const JobId once = b.submit(Bench::on_nodes(1));
  EXPECT_NE(refusal(once).find("score change 1 requeue=yes"), std::string::npos);
  auto held = requeued(1);
  held.held = true;
  EXPECT_EQ(refusal(b.submit(held)), "job 2 is pending, not running");
  const JobId twice = b.submit(requeued(1));
  b.pass(100ms);
  EXPECT_EQ(refusal(twice), "");
  EXPECT_EQ(refusal(twice), "job 3 is being requeued already");
  b.finish(once);
  EXPECT_EQ(refusal(once), "job 1 has ended");
  EXPECT_EQ(refusal(JobId{9}), "no job 9");
}

TEST(Requeue, RestartedHeadCompletesTheRequest) {
  for (const auto state : {JobState::Running, JobState::Completing}) {
    Bench b;
    b.add_nodes(1);
    RecoveredJob old;
    old.id = JobId{7};
    old.request = requeued(1);
    old.state = state;
    if (state == JobState::Completing) old.ending = JobState::Cancelled;
    old.attempt = base::make_attempt(old.id, 5);
    old.nodes = {NodeId{0}};
    old.cores = {{0}};
    old.tasks_on_node = {1};
    old.is_requeued = true;
    old.lost = "requested by alice";
    old.asked_restarts = old.restarts = 2;
    b.take(b.cluster.recover({old}, b.now));
    if (state == JobState::Running) b.expect_ok(b.cluster.end_attempt(old.id, b.now));
    b.say(NodeId{0}, base::Exited{old.attempt, {}, {}});
    b.pass(10ms);
    EXPECT_EQ(b.state(old.id), JobState::Running);
    EXPECT_EQ(b.view(old.id).restarts, 3U);
    EXPECT_EQ(b.view(old.id).asked_restarts, 3U);
  }
}

}  // namespace
}  // namespace score::gang
