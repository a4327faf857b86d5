// The head stops a job, asks its nodes for the stacks and lets the job go on.
#include "tests/support/head/head_fixture.hpp"

namespace score::head {
namespace {

class StacksTest : public HeadFixture {
 protected:
  void start() {
    for (const std::uint32_t node : {0U, 1U}) {
      nodes_[node] = connect_node(node);
      head_->links().link(NodeId(node)).vitals.reads_stacks = true;
    }
    alice_ = connect(kAlice);
    attempt_ = launch(alice_, nodes_[0], nodes_[1]);
    ASSERT_NE(attempt_, AttemptId());
  }

  static wire::GetStacks request_for(AttemptId attempt) {
    wire::GetStacks request;
    request.set_tag(5);
    request.set_job(job_of(attempt).value());
    return request;
  }

  std::vector<wire::StacksRequest> asked(std::uint32_t node) {
    return nodes_[node].connection->all<wire::StacksRequest>();
  }

  void answer(std::uint32_t node, const std::string& function) {
    wire::StacksReply reply;
    reply.set_tag(asked(node).back().tag());
    auto& frame = *reply.mutable_tree()->add_frames();
    frame.set_function(function);
    frame.set_ranks(std::to_string(node));
    frame.set_threads(1);
    reply.add_states()->set_rank(node);
    reply.add_states()->set_rank(1 - node);  // of the other node
    nodes_[node].session->dispatch(frame_of(reply));
  }

  [[nodiscard]] bool is_stopped() {
    const auto tables = nodes_[0].connection->all<wire::SetTimetable>();
    return !tables.empty() && tables.back().displaced_size() == 1;
  }

  FakeNode nodes_[2];
  FakeClient alice_;
  AttemptId attempt_;
};

TEST_F(StacksTest, JobIsStoppedReadAndContinued) {
  start();
  ASSERT_FALSE(is_stopped());
  alice_.say(request_for(attempt_));
  pass(200ms);
  EXPECT_TRUE(is_stopped());
  ASSERT_EQ(asked(0).size(), 1U);
  EXPECT_EQ(asked(0)[0].attempt(), attempt_.value());
  answer(0, "main");
  EXPECT_TRUE(alice_.connection->all<wire::Stacks>().empty()) << "a node is missing";
  answer(1, "main");
  const auto stacks = alice_.connection->all<wire::Stacks>();
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0].tag(), 5U);
  ASSERT_EQ(stacks[0].tree().frames_size(), 1);
  EXPECT_EQ(stacks[0].tree().frames(0).ranks(), "0-1");
  EXPECT_EQ(stacks[0].states_size(), 2) << "a node speaks only for its ranks";
  pass(1s);
  EXPECT_FALSE(is_stopped());
}

TEST_F(StacksTest, SilentNodeDoesNotHoldTheJob) {
  start();
  alice_.say(request_for(attempt_));
  settle();
  answer(1, "main");
  pass_alive(10s, {&nodes_[0], &nodes_[1]});
  const auto stacks = alice_.connection->all<wire::Stacks>();
  ASSERT_EQ(stacks.size(), 1U);
  ASSERT_EQ(stacks[0].tree().problems_size(), 1);
  EXPECT_EQ(stacks[0].tree().problems(0).ranks(), "0");
  EXPECT_NE(stacks[0].tree().problems(0).text().find("n0"), std::string::npos);
  EXPECT_FALSE(is_stopped());
}

TEST_F(StacksTest, OlderNodeIsNotAsked) {
  start();
  head_->links().link(NodeId(1)).vitals.reads_stacks = false;
  alice_.say(request_for(attempt_));
  settle();
  EXPECT_TRUE(asked(1).empty());
  answer(0, "main");
  EXPECT_EQ(alice_.connection->all<wire::Stacks>().at(0).tree().problems(0).ranks(), "1");
}

TEST_F(StacksTest, OnlyRanksOnOtherNodesAreLeftOut) {
  start();
  auto request = request_for(attempt_);
  request.set_ranks("1");
  alice_.say(request);
  settle();
  EXPECT_TRUE(asked(0).empty());
  ASSERT_EQ(asked(1).size(), 1U);
  EXPECT_EQ(asked(1)[0].ranks(), "1");
}

TEST_F(StacksTest, ForeignAndRepeatedRequestsAreRefused) {
  start();
  FakeClient bob = connect(kBob);
  bob.say(request_for(attempt_));
  settle();
  EXPECT_EQ(bob.connection->all<wire::Failed>().size(), 1U);
  EXPECT_FALSE(is_stopped());
  alice_.say(request_for(attempt_));
  alice_.say(request_for(attempt_));
  settle();
  EXPECT_EQ(alice_.connection->all<wire::Failed>().size(), 1U) << "it is being read already";
  EXPECT_EQ(asked(0).size(), 1U);
}

TEST_F(StacksTest, HostileTreeOfNodeIsNamed) {
  start();
  alice_.say(request_for(attempt_));
  settle();
  wire::StacksReply reply;
  reply.set_tag(asked(0).back().tag());
  reply.mutable_tree()->add_frames()->set_parent(7);
  nodes_[0].session->dispatch(frame_of(reply));
  answer(1, "main");
  const auto stacks = alice_.connection->all<wire::Stacks>();
  ASSERT_EQ(stacks.size(), 1U);
  EXPECT_EQ(stacks[0].tree().problems(0).ranks(), "0");
}

}  // namespace
}  // namespace score::head
