// Two heads: a node that a later one has welcomed shows its proof to the earlier one.
#include "scored/head/head_fixture.hpp"

namespace score::head {
namespace {

class OutlivedTest : public HeadFixture {
 protected:
  void SetUp() override {
    HeadFixture::SetUp();
    head_->nodes().set_key(key_);
    head_->nodes().on_outlived([this] { ++ends_; });
  }

  // True: it was welcomed.
  bool greet(Epoch newest, const std::string& proof) {
    connection_ = std::make_shared<FakeConnection>("node");
    NodeSession session(head_->for_nodes(), clock_, NodeId(0), connection_);
    NodeHello hello;
    hello.info = {"n0", 1, Bytes(1 << 30)};
    auto message = proto::to_wire(hello);
    message.set_head_epoch(newest.value());
    message.set_head_proof(proof);
    const bool goes_on = session.greet(frame_of(message));
    EXPECT_EQ(goes_on, connection_->all<wire::NodeWelcome>().size() == 1);
    return goes_on;
  }

  [[nodiscard]] Epoch later(std::uint64_t by) const {
    return Epoch(head_->nodes().incarnation().value() + by);
  }

  proto::Key key_ = proto::random_key();
  std::shared_ptr<FakeConnection> connection_;
  int ends_ = 0;
};

TEST_F(OutlivedTest, AProofOfALaterHeadEndsIt) {
  EXPECT_FALSE(greet(later(2), proto::prove_head(key_, later(2))));
  EXPECT_EQ(ends_, 1);
  EXPECT_FALSE(greet(later(1), proto::prove_head(key_, later(1)))) << "while it ends";
  EXPECT_EQ(ends_, 1);
}

TEST_F(OutlivedTest, AnotherNodesWordIsNoProof) {
  EXPECT_TRUE(greet(later(1), ""));
  EXPECT_TRUE(greet(later(1), std::string(32, 'x')));
  EXPECT_TRUE(greet(later(1), proto::prove_head(proto::random_key(), later(1))));
  EXPECT_TRUE(greet(later(2), proto::prove_head(key_, later(1)))) << "of another incarnation";
  EXPECT_TRUE(greet(later(1), std::string(100'000, 'x')));
  EXPECT_EQ(ends_, 0);
}

TEST_F(OutlivedTest, ItsOwnAndEarlierProofsAreNothingNew) {
  EXPECT_TRUE(greet(head_->nodes().incarnation(), head_->nodes().proof()));
  EXPECT_EQ(connection_->all<wire::NodeWelcome>()[0].head_proof(), head_->nodes().proof());
  EXPECT_TRUE(greet(Epoch(0), ""));
  EXPECT_TRUE(greet(Epoch(0), proto::prove_head(key_, Epoch(0))));
  EXPECT_EQ(ends_, 0);
}

TEST_F(OutlivedTest, WhatItWelcomedEndsTheOneBefore) {
  const Epoch before = head_->nodes().incarnation();
  ASSERT_TRUE(greet(Epoch(0), ""));
  const auto welcome = connection_->all<wire::NodeWelcome>()[0];
  EXPECT_EQ(Epoch(welcome.head_epoch()), before);
  start_head();
  head_->nodes().set_key(key_);
  EXPECT_GT(head_->nodes().incarnation(), before);
  EXPECT_TRUE(greet(Epoch(welcome.head_epoch()), welcome.head_proof())) << "it is the later one";
}

}  // namespace
}  // namespace score::head
