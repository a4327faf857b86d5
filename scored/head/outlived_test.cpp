// With two heads, a node that a later one has welcomed shows its proof to the earlier one.
#include "tests/support/head/head_fixture.hpp"

namespace score::head {
namespace {

class OutlivedTest : public HeadFixture {
 protected:
  void SetUp() override {
    HeadFixture::SetUp();
    head_->nodes().set_keys(proto::KeyRing(key_));
    head_->nodes().on_outlived([this] { ++ends_; });
  }

  // Returns true if the node was welcomed.
  bool greet(Epoch newest, const std::string& proof) {
    connection_ = std::make_shared<FakeConnection>("node");
    NodeSession session(head_->for_nodes(), clock_, NodeId(0), connection_);
    NodeHello hello;
    hello.info = {"n0", 1, Bytes(1 << 30)};
    hello.attempts = attempts_;
    auto message = proto::make_hello(hello);
    message.set_head_epoch(newest.value());
    message.set_head_proof(proof);
    message.set_last_job(last_job_);
    if (is_job_proven_) message.set_last_job_proof(proto::prove_job(key_, JobId(last_job_)));
    const bool goes_on = session.greet(frame_of(message));
    EXPECT_EQ(goes_on, connection_->all<wire::NodeWelcome>().size() == 1);
    return goes_on;
  }

  [[nodiscard]] Epoch later(std::uint64_t by) const {
    return Epoch(head_->nodes().incarnation().value() + by);
  }

  proto::Key key_ = proto::random_key();
  std::shared_ptr<FakeConnection> connection_;
  std::uint64_t last_job_ = 0;
  bool is_job_proven_ = true;
  std::vector<AttemptReport> attempts_;
  int ends_ = 0;
};

TEST_F(OutlivedTest, ProofOfALaterHeadEndsThisOne) {
  EXPECT_FALSE(greet(later(2), proto::prove_head(key_, later(2))));
  EXPECT_EQ(ends_, 1);
  EXPECT_FALSE(greet(later(1), proto::prove_head(key_, later(1)))) << "while it ends";
  EXPECT_EQ(ends_, 1);
}

TEST_F(OutlivedTest, UnprovenClaimIsIgnored) {
  EXPECT_TRUE(greet(later(1), ""));
  EXPECT_TRUE(greet(later(1), std::string(32, 'x')));
  EXPECT_TRUE(greet(later(1), proto::prove_head(proto::random_key(), later(1))));
  EXPECT_TRUE(greet(later(2), proto::prove_head(key_, later(1)))) << "of another incarnation";
  EXPECT_TRUE(greet(later(1), std::string(100'000, 'x')));
  EXPECT_EQ(ends_, 0);
}

// The database is 100 jobs and 5 starts old, so its head continues after what the nodes know.
TEST_F(OutlivedTest, RestoredHeadTakesOverAndReusesNoNumber) {
  config_.nodes = {"n0"};
  start_head();
  head_->nodes().set_keys(proto::KeyRing(key_));
  head_->nodes().on_outlived([this] { ++ends_; });
  head_->recover_from_copy();
  FakeClient alice = connect(kAlice);
  EXPECT_EQ(submit(alice, submission(1)), JobId()) << "no node has said what it knows";
  const Epoch lost = later(5);
  last_job_ = 100;
  EXPECT_FALSE(greet(lost, proto::prove_head(key_, lost))) << "until it has a greater incarnation";
  settle();
  EXPECT_TRUE(greet(lost, proto::prove_head(key_, lost)));
  EXPECT_EQ(ends_, 0);
  EXPECT_GT(Epoch(connection_->all<wire::NodeWelcome>()[0].head_epoch()), lost);
  EXPECT_EQ(submit(alice, submission(1)), JobId(101));
  const Epoch before = head_->nodes().incarnation();
  start_head();
  EXPECT_GT(head_->nodes().incarnation(), before) << "it is on disk";
}

TEST_F(OutlivedTest, NodeWithLaterJobsRaisesTheNextNumber) {
  FakeClient alice = connect(kAlice);
  EXPECT_EQ(submit(alice, submission(1)), JobId(1));
  last_job_ = 7;
  EXPECT_TRUE(greet(Epoch(0), ""));
  EXPECT_EQ(submit(alice, submission(1)), JobId(8));
}

// A node has a proof of a job's number only if it was given the job.
TEST_F(OutlivedTest, UnprovenJobNumbersRaiseNothing) {
  FakeClient alice = connect(kAlice);
  EXPECT_EQ(submit(alice, submission(1)), JobId(1));
  is_job_proven_ = false;
  for (std::uint64_t hello = 1; hello <= 12; ++hello) {
    last_job_ = hello * 100'000'000;
    EXPECT_TRUE(greet(Epoch(0), ""));
  }
  EXPECT_EQ(submit(alice, submission(1)), JobId(2));
}

// The node gets the proof with the job, and an older node ignores it.
TEST_F(OutlivedTest, NodeGetsTheProofWithItsJob) {
  FakeNode node = connect_node(0);
  FakeClient alice = connect(kAlice);
  const JobId job = submit(alice, submission(1));
  const auto orders = node.connection->all<wire::PrepareTasks>();
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_TRUE(proto::is_job_proof(key_, job, orders[0].job_proof()));
}

TEST_F(OutlivedTest, RestoredHeadDoesNotWaitForLostNodes) {
  head_->recover_from_copy();
  FakeClient alice = connect(kAlice);
  EXPECT_EQ(submit(alice, submission(1)), JobId());
  pass(config_.rejoin_grace);
  EXPECT_EQ(submit(alice, submission(1)), JobId(1));
}

// The database is a copy from before the submission of a job that runs.
TEST_F(OutlivedTest, OlderCopyDoesNotEndANewerJob) {
  FakeClient alice = connect(kAlice);
  const JobId known = submit(alice, submission(1));
  last_job_ = known.value() + 1;
  attempts_ = {{base::make_attempt(JobId(last_job_), 1), AttemptPhase::Running, {}, {}}};
  EXPECT_FALSE(greet(Epoch(0), ""));
  EXPECT_TRUE(connection_->all<wire::ForgetTasks>().empty());
  EXPECT_EQ(connection_->all<wire::Failed>().size(), 1U) << "its journal says why";
  EXPECT_EQ(submit(alice, submission(1)), JobId(last_job_ + 1)) << "its number is not used again";
  EXPECT_FALSE(greet(Epoch(0), ""));
  head_->recover_from_copy();
  EXPECT_TRUE(greet(Epoch(0), "")) << "with --recover";
}

// A second daemon with a node's key is refused while the first is heard.
TEST_F(OutlivedTest, SecondDaemonOfANodeIsRefused) {
  const auto come = [this](std::uint64_t instance) {
    FakeNode node;
    node.connection = std::make_shared<FakeConnection>("node");
    node.session =
        std::make_unique<NodeSession>(head_->for_nodes(), clock_, NodeId(0), node.connection);
    NodeHello hello;
    hello.info = {"n0", 1, Bytes(1 << 30)};
    auto message = proto::make_hello(hello);
    message.set_instance(instance);
    if (!node.session->greet(frame_of(message))) node.connection->close();
    return node;
  };
  FakeNode first = come(1);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(come(2).connection->is_open());
    clock_.advance(1s);
    EXPECT_TRUE(first.session->dispatch(frame_of(wire::Heartbeat())));
  }
  EXPECT_TRUE(first.connection->is_open());
  FakeNode same = come(1);
  EXPECT_TRUE(same.connection->is_open()) << "its own new connection";
  same.connection->close();
  FakeNode restarted = come(3);
  EXPECT_TRUE(restarted.connection->is_open()) << "at once when the connection is gone";
  clock_.advance(4s);
  EXPECT_TRUE(come(4).connection->is_open()) << "the first is not heard any more";
}

TEST_F(OutlivedTest, OwnAndEarlierProofsAreIgnored) {
  EXPECT_TRUE(greet(head_->nodes().incarnation(), head_->nodes().proof()));
  EXPECT_EQ(connection_->all<wire::NodeWelcome>()[0].head_proof(), head_->nodes().proof());
  EXPECT_TRUE(greet(Epoch(0), ""));
  EXPECT_TRUE(greet(Epoch(0), proto::prove_head(key_, Epoch(0))));
  EXPECT_EQ(ends_, 0);
}

TEST_F(OutlivedTest, WelcomedNodeEndsTheEarlierHead) {
  const Epoch before = head_->nodes().incarnation();
  ASSERT_TRUE(greet(Epoch(0), ""));
  const auto welcome = connection_->all<wire::NodeWelcome>()[0];
  EXPECT_EQ(Epoch(welcome.head_epoch()), before);
  start_head();
  head_->nodes().set_keys(proto::KeyRing(key_));
  EXPECT_GT(head_->nodes().incarnation(), before);
  EXPECT_TRUE(greet(Epoch(welcome.head_epoch()), welcome.head_proof())) << "it is the later one";
}

}  // namespace
}  // namespace score::head
