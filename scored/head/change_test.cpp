// Changes of jobs' requests, and requeues by request: what is stored, refused and recovered.
#include "base/request/job_keys.hpp"
#include "tests/support/head/head_fixture.hpp"

#include <random>

namespace score::head {
namespace {

class ChangeTest : public HeadFixture {
 protected:
  static wire::ChangeJob change(JobId job, std::initializer_list<JobKey> keys) {
    wire::ChangeJob message;
    message.set_job(job.value());
    for (const JobKey key : keys) message.add_keys(static_cast<std::uint32_t>(key));
    message.mutable_resources()->set_weight(100);
    message.mutable_resources()->set_queue(static_cast<std::uint32_t>(Queue::Normal));
    return message;
  }

  static wire::ControlJob requeue(JobId job) {
    wire::ControlJob message;
    message.set_job(job.value());
    message.set_what(wire::ControlJob::REQUEUE);
    return message;
  }

  // Returns the refusal; "" if the command succeeded.
  template <class Message>
  std::string refused(UserId user, const Message& message) {
    FakeClient client = connect(user);
    client.say(message);
    settle();
    const auto failed = client.connection->all<wire::Failed>();
    EXPECT_EQ(failed.size() + client.connection->all<wire::Done>().size(), 1U);
    return failed.empty() ? "" : failed[0].error().text();
  }

  // Submits a detached job of Alice's that waits, because there is no node.
  JobId waiting_job(Requeue wish = Requeue::No) {
    FakeClient alice = connect(kAlice);
    wire::Submit message = submission(1);
    message.set_detached(true);
    message.mutable_resources()->set_requeue(static_cast<std::uint32_t>(wish));
    return submit(alice, message);
  }

  AttemptId start_newest(FakeNode& node) {
    const AttemptId attempt = newest(node);
    start(node, attempt);
    return attempt;
  }

  wire::JobStatus status(JobId job) {
    FakeClient alice = connect(kAlice);
    return status_of(alice, job);
  }
};

TEST_F(ChangeTest, ChangedRequestSurvivesARestart) {
  const JobId job = waiting_job();
  wire::ChangeJob message =
      change(job, {JobKey::Time, JobKey::Name, JobKey::Memory, JobKey::Begin, JobKey::Signal});
  message.mutable_resources()->set_scheduled_limit_ns(Duration(1h).count());
  message.mutable_resources()->set_memory_per_node_bytes(1 << 20);
  message.mutable_resources()->set_limit_signal(10);
  message.mutable_resources()->set_limit_signal_before_ns(Duration(30s).count());
  message.set_name("renamed");
  message.mutable_conditions()->set_begin_wall_ns((wall_now() + 24h).time_since_epoch().count());
  EXPECT_EQ(refused(kAlice, message), "");
  for (int i = 0; i < 2; ++i) {
    const wire::JobStatus shown = status(job);
    EXPECT_EQ(shown.name(), "renamed") << i;
    EXPECT_EQ(shown.scheduled_limit_ns(), Duration(1h).count());
    EXPECT_EQ(shown.memory_per_node_bytes(), 1U << 20);
    EXPECT_EQ(shown.limit_signal(), 10);
    ASSERT_EQ(shown.reasons_size(), 1);
    EXPECT_NE(shown.reasons(0).find("(--begin)"), std::string::npos);
    start_head();
  }
}

TEST_F(ChangeTest, JobThatWaitsNoLongerIsPlaced) {
  FakeNode node = connect_node(0);
  FakeClient alice = connect(kAlice);
  wire::Submit message = submission(1);
  message.set_detached(true);
  message.mutable_conditions()->set_begin_wall_ns((wall_now() + 24h).time_since_epoch().count());
  const JobId job = submit(alice, message);
  EXPECT_EQ(state_of(alice, job), JobState::Pending);
  EXPECT_EQ(refused(kAlice, change(job, {JobKey::Begin})), "");
  EXPECT_EQ(state_of(alice, job), JobState::Launching);
}

TEST_F(ChangeTest, RefusalNamesTheKeyAndChangesNothing) {
  const JobId job = waiting_job();
  wire::ChangeJob message = change(job, {JobKey::Name, JobKey::Nodes, JobKey::Memory});
  message.set_name("renamed");
  message.mutable_resources()->set_nodes(100);
  message.mutable_resources()->set_memory_per_node_bytes(1 << 20);
  EXPECT_EQ(refused(kAlice, message).substr(0, 26), "nodes: requested 100 nodes");
  EXPECT_NE(status(job).name(), "renamed");
  EXPECT_EQ(status(job).memory_per_node_bytes(), 0U);

  wire::ChangeJob weight = change(job, {JobKey::Weight, JobKey::Time});
  weight.mutable_resources()->set_weight(1000);
  EXPECT_EQ(refused(kAlice, weight).substr(0, 12), "weight: weig");
  EXPECT_EQ(refused(kOperator, weight), "");

  wire::ChangeJob after = change(job, {JobKey::After});
  after.mutable_conditions()->add_after()->set_job(999);
  EXPECT_EQ(refused(kAlice, after).substr(0, 6), "after:");
  EXPECT_NE(refused(kAlice, change(job, {})), "");
  EXPECT_NE(refused(kAlice, change(job, {JobKey::Time, JobKey::Time})), "");
  wire::ChangeJob unknown = change(job, {});
  unknown.add_keys(4711);
  EXPECT_EQ(refused(kAlice, unknown), "this head has no key of number 4711");
  EXPECT_EQ(refused(kBob, change(job, {JobKey::Time})),
            "only its owner and operators may change job 1");
}

TEST_F(ChangeTest, OnlyOperatorsRaiseLimitsOfRunningJobs) {
  FakeNode node = connect_node(0);
  const JobId job = waiting_job();
  start_newest(node);
  const auto limit = [job](Duration time) {
    wire::ChangeJob message = change(job, {JobKey::ElapsedTime});
    message.mutable_resources()->set_wall_limit_ns(time.count());
    return message;
  };
  EXPECT_EQ(refused(kAlice, limit(2h)), "") << "there was no limit";
  EXPECT_EQ(refused(kAlice, limit(1h)), "");
  const std::string why = "wall-time: only operators may raise a limit of a job that has started";
  EXPECT_EQ(refused(kAlice, limit(3h)), why);
  EXPECT_EQ(refused(kAlice, limit(0h)), why);
  EXPECT_EQ(refused(kOperator, limit(3h)), "");
  EXPECT_EQ(status(job).wall_limit_ns(), Duration(3h).count());
  EXPECT_NE(refused(kAlice, change(job, {JobKey::Nodes})).find("nodes: job 1 has started"),
            std::string::npos);
  EXPECT_EQ(refused(kAlice, change(JobId(9), {JobKey::Time})), "no job 9");
}

TEST_F(ChangeTest, LastOfTwoChangesAtOnceHolds) {
  const JobId job = waiting_job();
  FakeClient alice = connect(kAlice);
  for (const std::string name : {"one", "two"}) {
    wire::ChangeJob message = change(job, {JobKey::Name});
    message.set_name(name);
    alice.say(message);
  }
  settle();
  EXPECT_EQ(alice.connection->all<wire::Done>().size(), 2U);
  EXPECT_EQ(status(job).name(), "two");
  start_head();
  EXPECT_EQ(status(job).name(), "two");
}

TEST_F(ChangeTest, RandomBytesKeepTheJobSound) {
  const JobId job = waiting_job();
  std::mt19937 random(7);
  FakeClient alice = connect(kAlice);
  for (int i = 0; i < 300; ++i) {
    std::string bytes =
        change(job, {JobKey::Time, JobKey::Nodes, JobKey::After}).SerializeAsString();
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    wire::ChangeJob message;
    if (!message.ParseFromString(bytes)) continue;
    message.set_job(job.value());
    alice.say(message);
    if (i % 50 == 0) settle();
  }
  settle();
  EXPECT_EQ(status(job).job(), job.value());
  start_head();
  EXPECT_EQ(status(job).job(), job.value());
}

// ---- requeue

TEST_F(ChangeTest, RequeuedJobRunsAgain) {
  FakeNode node = connect_node(0);
  const JobId job = waiting_job(Requeue::Yes);
  const AttemptId first = start_newest(node);
  EXPECT_EQ(refused(kAlice, requeue(job)), "");
  const auto signals = node.connection->all<wire::SignalTasks>();
  ASSERT_EQ(signals.size(), 2U);
  EXPECT_EQ(signals[0].signal(), SIGTERM);
  EXPECT_EQ(status(job).state(), static_cast<std::uint32_t>(JobState::Running));
  end(node, first, 0);
  const AttemptId second = start_newest(node);
  EXPECT_NE(first, second);
  EXPECT_EQ(status(job).restarts(), 1U);
  EXPECT_EQ(status(job).state(), static_cast<std::uint32_t>(JobState::Running));
}

TEST_F(ChangeTest, TasksThatStayAreKilledAfterTheGrace) {
  FakeNode node = connect_node(0);
  const JobId job = waiting_job(Requeue::Yes);
  const AttemptId first = start_newest(node);
  EXPECT_EQ(refused(kAlice, requeue(job)), "");
  pass_alive(10s, {&node});
  const auto kills = node.connection->all<wire::KillTasks>();
  ASSERT_FALSE(kills.empty());
  EXPECT_EQ(kills.back().attempt(), first.value());
  end(node, first, 0);
  EXPECT_NE(newest(node), first);
}

TEST_F(ChangeTest, RestartedHeadCompletesARequeue) {
  FakeNode node = connect_node(0);
  const JobId job = waiting_job(Requeue::Yes);
  const AttemptId first = start_newest(node);
  EXPECT_EQ(refused(kAlice, requeue(job)), "");
  start_head();
  FakeNode again = connect_node(0);
  again.say(Exited{first, {{Rank(0), 0, 0}}, ""});
  settle();
  EXPECT_NE(newest(again), first);
  start_newest(again);
  EXPECT_EQ(status(job).restarts(), 1U);
}

TEST_F(ChangeTest, RequeueIsRefusedWithItsReason) {
  FakeNode node = connect_node(0);
  const JobId job = waiting_job();
  start_newest(node);
  EXPECT_NE(refused(kAlice, requeue(job)).find("score change 1 requeue=yes"), std::string::npos);
  wire::ChangeJob allow = change(job, {JobKey::Requeue});
  allow.mutable_resources()->set_requeue(static_cast<std::uint32_t>(Requeue::Yes));
  EXPECT_EQ(refused(kAlice, allow), "");
  EXPECT_EQ(refused(kBob, requeue(job)), "only its owner and operators may requeue job 1");
  EXPECT_EQ(refused(kOperator, requeue(job)), "");
  EXPECT_EQ(refused(kAlice, requeue(job)), "job 1 is being requeued already");
  end(node, newest(node), 0);
  FakeClient alice = connect(kAlice);
  wire::Submit driven = submission(1);
  driven.mutable_resources()->set_requeue(static_cast<std::uint32_t>(Requeue::Yes));
  const JobId other = submit(alice, driven);
  start_newest(node);
  EXPECT_NE(refused(kAlice, requeue(other)).find("has a front end"), std::string::npos);
}

}  // namespace
}  // namespace score::head
