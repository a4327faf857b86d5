// These tests show a job that lost a node to its front end, and over a restart of the head.
#include "tests/support/head/head_fixture.hpp"

namespace score::head {
namespace {

class RequeueTest : public HeadFixture {
 protected:
  static wire::Submit requeued(Requeue wish = Requeue::Yes) {
    wire::Submit message = submission(1);
    message.mutable_resources()->set_requeue(static_cast<std::uint32_t>(wish));
    return message;
  }

  // Runs the job on one node.
  AttemptId run(FakeClient& client, FakeNode& node, const wire::Submit& message) {
    EXPECT_NE(submit(client, message), JobId());
    return start(node);
  }

  AttemptId start(FakeNode& node) {
    const auto prepares = node.connection->all<wire::PrepareTasks>();
    if (prepares.empty()) return AttemptId();
    const AttemptId attempt(prepares.back().attempt());
    node.say(Prepared{attempt});
    pass(50ms);  // a second timetable comes a little later
    node.say(Started{attempt});
    settle();
    return attempt;
  }

  // The node comes back and knows no attempts.
  FakeNode lose(std::uint32_t index) {
    FakeNode node = connect_node(index);
    settle();
    return node;
  }

  static wire::TaskOutput output(AttemptId attempt, const std::string& data, std::uint64_t offset) {
    wire::TaskOutput message;
    message.set_attempt(attempt.value());
    message.set_stream(wire::STDOUT);
    message.set_data(data);
    message.set_offset(offset);
    return message;
  }

  static std::string received(const FakeClient& client) {
    std::string all;
    for (const auto& one : client.connection->all<wire::Output>()) all += one.data();
    return all;
  }
};

TEST_F(RequeueTest, FrontEndSeesBothAttempts) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  const AttemptId first = run(client, node, requeued());
  ASSERT_NE(first, AttemptId());
  client.say(attachment(JobId(1)));
  node.session->dispatch(frame_of(output(first, "one\n", 0)));
  FakeNode again = lose(0);
  EXPECT_EQ(again.connection->all<wire::PrepareTasks>().back().restarts(), 1U);
  const AttemptId second = start(again);
  EXPECT_NE(first, second);
  EXPECT_EQ(status_of(client, JobId(1)).restarts(), 1U);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
  again.session->dispatch(frame_of(output(first, "late\n", 4)));
  again.session->dispatch(frame_of(output(second, "two\n", 0)));
  again.say(Exited{second, {{Rank(0), 0, 0}}, ""});
  settle();
  EXPECT_EQ(received(client), "one\ntwo\n");
  const auto ended = client.connection->all<wire::JobEnded>();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(static_cast<JobState>(ended[0].status().state()), JobState::Completed);
  EXPECT_EQ(ended[0].status().restarts(), 1U);
}

TEST_F(RequeueTest, RestartCountSurvivesAHeadRestart) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  run(client, node, requeued());
  FakeNode again = lose(0);
  const AttemptId second = start(again);
  settle();
  start_head();
  FakeClient other = connect(kAlice);
  EXPECT_EQ(status_of(other, JobId(1)).restarts(), 1U);
  FakeNode third = connect_node(0, {{second, AttemptPhase::Running, {}, ""}});
  settle();
  EXPECT_EQ(state_of(other, JobId(1)), JobState::Running);
}

TEST_F(RequeueTest, DefaultAppliesIfTheJobSaysNothing) {
  for (const bool is_default : {false, true}) {
    config_.requeue = is_default;
    start_head();
    FakeNode node = connect_node(0);
    FakeClient client = connect(kAlice);
    run(client, node, requeued(Requeue::Default));
    const JobId job(is_default ? 2 : 1);
    FakeNode again = lose(0);
    EXPECT_EQ(state_of(client, job), is_default ? JobState::Launching : JobState::NodeFailed);
  }
}

TEST_F(RequeueTest, CancelledJobIsNotRequeued) {
  FakeNode node = connect_node(0);
  FakeClient client = connect(kAlice);
  run(client, node, requeued());
  client.say(cancel(JobId(1), 60s));
  settle();
  FakeNode again = lose(0);
  head_->tick();
  settle();
  for (const auto& prepare : again.connection->all<wire::PrepareTasks>()) {
    again.say(Exited{AttemptId(prepare.attempt()), {}, ""});
  }
  settle();
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Cancelled);
}

}  // namespace
}  // namespace score::head
