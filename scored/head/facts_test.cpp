// The head collects the facts of the nodes for `score doctor`.
#include "tests/support/head/head_fixture.hpp"

#include <unistd.h>

namespace score::head {
namespace {

class FactsTest : public HeadFixture {};

TEST_F(FactsTest, AsksOnlyNodesThatSupportTheRequest) {
  const FakeNode older = connect_node(0);
  FakeNode node = connect_node(1);
  head_->links().link(NodeId(1)).vitals.release = "1.2.0";
  FakeClient client = connect(kAlice);
  client.say(wire::GetFacts());
  EXPECT_TRUE(older.connection->all<wire::FactsRequest>().empty());
  wire::FactsReply reply;
  reply.set_tag(node.connection->all<wire::FactsRequest>().at(0).tag());
  reply.mutable_facts()->set_name("somebody else");
  reply.mutable_facts()->set_wall_ns((wall_now().time_since_epoch() + 90s).count());
  node.session->dispatch(frame_of(reply));
  const auto facts = client.connection->all<wire::Facts>();
  ASSERT_EQ(facts.size(), 1u);
  EXPECT_EQ(facts[0].head().user(), ::geteuid());
  ASSERT_EQ(facts[0].nodes_size(), 1);
  EXPECT_EQ(facts[0].nodes(0).name(), "n1");
  EXPECT_NEAR(static_cast<double>(facts[0].nodes(0).ahead_ns()), 90e9, 80e9);
}

TEST_F(FactsTest, NamesNodesThatDoNotReply) {
  const FakeNode node = connect_node(0);
  head_->links().link(NodeId(0)).vitals.release = "1.2.0";
  FakeClient client = connect(kAlice);
  client.say(wire::GetFacts());
  pass(3s);
  const auto facts = client.connection->all<wire::Facts>();
  ASSERT_EQ(facts.size(), 1u);
  ASSERT_EQ(facts[0].silent_nodes_size(), 1);
  EXPECT_EQ(facts[0].silent_nodes(0), "n0");
}

}  // namespace
}  // namespace score::head
