#include "gang/state/node_table.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

struct TwoNodes {
  TwoNodes() {
    for (const std::uint32_t id : {10U, 20U}) {
      EXPECT_TRUE(nodes.add(NodeId{id}, fmt::format("node{}", id)));
    }
    step.now = TimePoint{1h};
  }

  ClusterConfig config;
  NodeTable nodes{config};
  Step step;
};

TEST(NodeTable, NamesAndIdsAreUnique) {
  TwoNodes t;
  EXPECT_TRUE(t.nodes.add(NodeId{10}, "other").error().is(base::Errc::Exists));
  EXPECT_TRUE(t.nodes.add(NodeId{30}, "node10").error().is(base::Errc::Exists));
  EXPECT_EQ(t.nodes.find("node20"), NodeIndex{1});
  EXPECT_EQ(t.nodes.find(NodeId{20}), NodeIndex{1});
  EXPECT_FALSE(t.nodes.find("node30"));
  EXPECT_EQ(t.nodes.ids(), (std::vector{NodeId{10}, NodeId{20}}));
}

TEST(NodeTable, MessagesGoToConnectedNodesOnly) {
  TwoNodes t;
  t.nodes.connect(0, t.step);
  t.step.actions.clear();
  t.nodes.send(0, base::KillTasks{AttemptId{1}}, t.step);
  t.nodes.send(1, base::KillTasks{AttemptId{1}}, t.step);
  ASSERT_EQ(t.step.actions.size(), 1U);
  EXPECT_EQ(std::get<SendToNode>(t.step.actions[0]).node, NodeId{10});
}

TEST(NodeTable, HelloEndsSuspicionAfterBrokenLink) {
  TwoNodes t;
  t.nodes.connect(0, t.step);
  EXPECT_EQ(t.nodes[0].state, NodeState::Up);
  t.nodes.disconnect(0, false, t.step);
  EXPECT_EQ(t.nodes[0].state, NodeState::Suspect);
  t.nodes.connect(0, t.step);
  EXPECT_EQ(t.nodes[0].state, NodeState::Up);
  EXPECT_EQ(t.step.actions.size(), 3U) << "each change is an action";
}

TEST(NodeTable, SilentNodeIsSuspectUntilHeard) {
  TwoNodes t;
  t.nodes.connect(0, t.step);
  t.step.now = *t.nodes.next_deadline();
  EXPECT_EQ(t.nodes.advance(t.step).size(), 1U);
  EXPECT_EQ(t.nodes[0].state, NodeState::Suspect);
  EXPECT_TRUE(t.nodes.heard(0, t.step));
  EXPECT_EQ(t.nodes[0].state, NodeState::Up);
  EXPECT_FALSE(t.nodes.heard(0, t.step)) << "it was up";
}

TEST(NodeTable, StuckNodeIsUpAfterLastZombie) {
  TwoNodes t;
  t.nodes.connect(0, t.step);
  t.nodes.add_zombie(0, AttemptId{1});
  t.nodes.add_zombie(0, AttemptId{2});
  t.nodes.set_stuck(0, t.step);
  EXPECT_EQ(t.nodes[0].state, NodeState::Suspect);
  EXPECT_FALSE(t.nodes.remove_zombie(0, AttemptId{1}, t.step));
  EXPECT_TRUE(t.nodes.remove_zombie(0, AttemptId{2}, t.step));
  EXPECT_EQ(t.nodes[0].state, NodeState::Up);
}

TEST(NodeTable, LastAwaitedNodeEndsTheWait) {
  TwoNodes t;
  t.nodes.await(0, t.step.now, t.step.now + 10s);
  t.nodes.await(1, t.step.now, t.step.now + 10s);
  EXPECT_TRUE(t.nodes.is_awaiting());
  EXPECT_FALSE(t.nodes.stop_awaiting(0));
  EXPECT_FALSE(t.nodes.stop_awaiting(0));
  EXPECT_TRUE(t.nodes.stop_awaiting(1));
  EXPECT_FALSE(t.nodes.is_awaiting());
}

}  // namespace
}  // namespace score::gang
