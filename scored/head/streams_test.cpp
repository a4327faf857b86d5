// These tests show what passes through the head between nodes and front ends, as the sessions see
// it.
#include "tests/support/head/head_fixture.hpp"

#include <algorithm>
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

// One user's many jobs do not displace what another user's job has written.
TEST_F(StreamsTest, KeptOutputOfOthersOutlivesManyJobs) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient alice = connect(kAlice);
  FakeClient bob = connect(kBob);
  wire::Submit message = submission();
  message.set_detached(true);
  const auto run = [&](FakeClient& client, std::size_t chunks) {
    const AttemptId attempt = launch(client, first, second, message);
    for (std::size_t i = 0; i < chunks; ++i) {
      const std::size_t bytes = limits::kIoChunkBytes;
      first.session->dispatch(frame_of(output(attempt, std::string(bytes, 'x'), i * bytes)));
    }
    end_rank(first, attempt, 0);
    end_rank(second, attempt, 1);
    settle();
  };
  run(bob, 1);
  for (int i = 0; i < 260; ++i) run(alice, 3);
  pass(config_.front_end_grace + 1s);
  FakeClient late = connect(kBob);
  late.say(attachment(JobId(1), false));
  settle();
  EXPECT_EQ(late.connection->all<wire::Output>().size(), 1U);
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

// Nodes of this release announce their key-values, and the head keeps none of them.
TEST_F(StreamsTest, LargeFenceTravelsInPieces) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::FenceEnter enter;
  enter.set_attempt(launch(client, first, second).value());
  enter.set_step(wire::FenceEnter::ANNOUNCE);
  enter.set_bytes(100'000);
  first.session->dispatch(frame_of(enter));
  enter.set_bytes(0);
  second.session->dispatch(frame_of(enter));
  const auto fetches = first.connection->all<wire::FenceDone>();
  ASSERT_EQ(fetches.size(), 2u);
  EXPECT_TRUE(second.connection->all<wire::FenceDone>().empty());
  for (const wire::FenceDone& fetch : fetches) {
    wire::FenceEnter piece = enter;
    piece.set_step(wire::FenceEnter::PIECE);
    piece.set_offset(fetch.offset());
    piece.set_key_values(std::string(fetch.fetch(), 'k'));
    first.session->dispatch(frame_of(piece));
  }
  std::string got;
  for (const wire::FenceDone& piece : second.connection->all<wire::FenceDone>()) {
    EXPECT_EQ(piece.offset(), got.size());
    EXPECT_EQ(piece.bytes(), 100'000u);
    got += piece.key_values();
  }
  EXPECT_EQ(got, std::string(100'000, 'k'));
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
}

TEST_F(StreamsTest, HostileFenceEndsItsJobOnly) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::FenceEnter enter;
  enter.set_attempt(launch(client, first, second).value());
  enter.set_step(wire::FenceEnter::ANNOUNCE);
  enter.set_bytes(std::uint64_t{1} << 40U);
  EXPECT_TRUE(first.session->dispatch(frame_of(enter))) << "the connection stays";
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Completing);
  EXPECT_NE(reason_of(client, JobId(1)).find("PMI key-values of all ranks exceed"),
            std::string::npos)
      << reason_of(client, JobId(1));
}

// The sender repeats what is dropped, so neither the job nor the connection has to end.
TEST_F(StreamsTest, RelaysBeyondBudgetAreDropped) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::JobRelay relay;
  relay.set_attempt(launch(client, first, second).value());
  relay.set_node_index(1);
  relay.mutable_message()->set_data(std::string((1 << 20) - 200, 'x'));
  for (int i = 0; i < 100; ++i) first.session->dispatch(frame_of(relay));
  EXPECT_EQ(second.connection->all<wire::JobRelay>().size(), 100u) << "they are read";
  second.connection->is_stuck = true;
  for (int i = 0; i < 100; ++i) first.session->dispatch(frame_of(relay));
  EXPECT_EQ(second.connection->all<wire::JobRelay>().size(), 100u + 16u) << "a user's budget";
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
  second.connection->read_all();
  first.session->dispatch(frame_of(relay));
  EXPECT_EQ(second.connection->all<wire::JobRelay>().size(), 100u + 17u);
}

// A node asks before it sends a large message; what all nodes of a user may send is bounded.
TEST_F(StreamsTest, LargeRelaysWaitForRoom) {
  FakeNode first = connect_node(0);
  FakeNode second = connect_node(1);
  FakeClient client = connect(kAlice);
  wire::JobRelay question;
  question.set_attempt(launch(client, first, second).value());
  question.set_ask_bytes(6 << 20);
  const auto answers = [](const FakeNode& node) {
    return std::ranges::count_if(node.connection->all<wire::JobRelay>(),
                                 [](const auto& relay) { return relay.may_send(); });
  };
  second.connection->is_stuck = true;
  wire::JobRelay large = question;
  large.clear_ask_bytes();
  large.set_node_index(1);
  large.mutable_message()->set_data(std::string((6 << 20) - 100, 'x'));
  for (int i = 0; i < 2; ++i) {
    first.session->dispatch(frame_of(question));
    EXPECT_EQ(answers(first), i + 1);
    first.session->dispatch(frame_of(large));
  }
  for (int i = 0; i < 5; ++i) first.session->dispatch(frame_of(question));
  EXPECT_EQ(answers(first), 2) << "the other node has read nothing";
  question.set_ask_bytes(std::uint64_t{1} << 40U);
  second.connection->read_all();
  first.session->dispatch(frame_of(question));
  EXPECT_EQ(answers(first), 2) << "no message is that large";
  question.set_ask_bytes(6 << 20);
  first.session->dispatch(frame_of(question));
  EXPECT_EQ(answers(first), 3);
  EXPECT_EQ(state_of(client, JobId(1)), JobState::Running);
}

}  // namespace
}  // namespace score::head
