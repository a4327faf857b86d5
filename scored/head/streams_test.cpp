// These tests show what passes through the head between nodes and front ends, as the sessions see
// it.
#include "tests/support/head/head_fixture.hpp"

#include <tuple>

namespace score::head {
namespace {

using StreamsTest = HeadFixture;

// Nodes repeat what was in flight, and from these offsets a front end knows what it already has.
TEST_F(StreamsTest, OutputHasItsNodeAndOffset) {
  AttemptId attempt;
  {
    FakeNode first = connect_node(0);
    FakeNode second = connect_node(1);
    FakeClient client = connect(kAlice);
    attempt = launch(client, first, second);
  }
  start_head();
  FakeNode first = connect_node(0, {{attempt, AttemptPhase::Running, {}, {}}});
  FakeNode second = connect_node(1, {{attempt, AttemptPhase::Running, {}, {}}});
  second.session->dispatch(frame_of(output(attempt, "again", 70)));
  first.session->dispatch(frame_of(output(attempt, "first", 5)));
  FakeClient client = connect(kAlice);
  wire::Attach attach = attachment(JobId(1));
  attach.set_have_bytes(80);
  client.say(attach);
  settle();
  second.session->dispatch(frame_of(output(attempt, "ain and more", 73)));
  const auto sent = client.connection->all<wire::Output>();
  ASSERT_EQ(sent.size(), 3u);
  const auto stands = [&attempt](const wire::Output& one) {
    EXPECT_EQ(one.attempt(), attempt.value());
    return std::tuple(one.node_index(), one.offset(), one.data());
  };
  EXPECT_EQ(stands(sent[0]), std::tuple(1U, 70U, "again"));
  EXPECT_EQ(stands(sent[1]), std::tuple(0U, 5U, "first"));
  EXPECT_EQ(stands(sent[2]), std::tuple(1U, 75U, "n and more"));
}

void end_rank(FakeNode& node, AttemptId attempt, std::uint32_t rank) {
  Exited exited;
  exited.attempt = attempt;
  exited.exits = {{Rank(rank), 0, 0}};
  node.say(TaskEnded{attempt, exited.exits[0]});
  node.say(exited);
}

TEST_F(StreamsTest, DetachedJobsOutputIsKeptAfterItsEnd) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::Submit message = submission();
  message.set_detached(true);
  const AttemptId attempt = launch(client, first, second, message);
  first.session->dispatch(frame_of(output(attempt, "hello\n", 0)));
  end_rank(first, attempt, 0);
  end_rank(second, attempt, 1);
  settle();
  for (int time = 0; time < 2; ++time) {
    pass(config_.front_end_grace + 1s);
    FakeClient late = connect(kAlice);
    late.say(attachment(JobId(1), false));
    settle();
    const auto sent = late.connection->all<wire::Output>();
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].data(), "hello\n");
    ASSERT_EQ(late.connection->all<wire::JobEnded>().size(), 1U);
  }
}

// A shepherd belongs to its user, and the link that it would fill also serves other jobs.
TEST_F(StreamsTest, RepeatedFenceEndsTheJob) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::FenceEnter enter;
  enter.set_attempt(launch(client, first, second).value());
  enter.set_key_values("a");
  first.session->dispatch(frame_of(enter));
  second.session->dispatch(frame_of(enter));
  first.session->dispatch(frame_of(enter));
  EXPECT_EQ(first.connection->all<wire::FenceDone>().size(), 2u) << "the answer may have been lost";
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
  for (int i = 0; i < 3; ++i) first.session->dispatch(frame_of(enter));
  EXPECT_EQ(first.connection->all<wire::FenceDone>().size(), 2u);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Completing);
}

TEST_F(StreamsTest, RelayBacklogEndsTheJob) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::JobRelay relay;
  relay.set_attempt(launch(client, first, second).value());
  relay.set_node_index(1);
  relay.mutable_message()->set_data(std::string(1 << 20, 'x'));
  for (int i = 0; i < 100; ++i) first.session->dispatch(frame_of(relay));
  EXPECT_EQ(second.connection->all<wire::JobRelay>().size(), 100u) << "they are read";
  second.connection->is_stuck = true;
  for (int i = 0; i < 100; ++i) first.session->dispatch(frame_of(relay));
  EXPECT_LT(second.connection->all<wire::JobRelay>().size(), 140u);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Completing);
}

}  // namespace
}  // namespace score::head
