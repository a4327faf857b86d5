#include "gang/state/topology.hpp"

#include "tests/support/gang/cluster_bench.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace score::gang {
namespace {

using Names = std::vector<std::string>;
using Nodes = std::vector<NodeIndex>;

std::string error_of(const std::vector<Switch>& switches) {
  const auto made = Topology::make(switches);
  return made ? "" : made.error().context();
}

std::string name(NodeIndex node) {
  return "n" + std::to_string(node);
}

// Makes leaves a, b, c and d with four nodes each; ab and cd are above them, and top above those.
class TopologyTest : public testing::Test {
 protected:
  TopologyTest() {
    std::vector<Switch> switches;
    for (NodeIndex leaf = 0; leaf < 4; ++leaf) {
      Switch one{std::string(1, static_cast<char>('a' + leaf)), {}, {}};
      for (NodeIndex node = 4 * leaf; node < 4 * leaf + 4; ++node) one.nodes.push_back(name(node));
      switches.push_back(one);
    }
    switches.push_back({"ab", {}, {"a", "b"}});
    switches.push_back({"cd", {}, {"c", "d"}});
    switches.push_back({"top", {}, {"ab", "cd"}});
    topology_ = *Topology::make(switches);
    for (NodeIndex node = 0; node < 20; ++node) leaves_.push_back(topology_.leaf_of(name(node)));
  }

  Nodes choose(std::uint32_t nodes, const Nodes& free, std::uint32_t most = 0) const {
    Shape shape;
    shape.nodes = shape.tasks = nodes;
    shape.most_nodes = most;
    shape.tasks_of_each_more = most > 0 ? 1 : 0;
    std::vector<Candidate> candidates;
    for (const NodeIndex node : free) candidates.push_back({node, 1, load_of(node)});
    const auto choice = topology_.choose(shape, leaves_, candidates);
    return choice ? choice->nodes : Nodes();
  }

  std::uint32_t load_of(NodeIndex node) const { return node < loads_.size() ? loads_[node] : 0; }

  static Nodes all() {
    Nodes nodes(16);
    std::iota(nodes.begin(), nodes.end(), 0);
    return nodes;
  }

  Topology topology_;
  std::vector<Topology::Leaf> leaves_;
  std::vector<std::uint32_t> loads_;
};

TEST_F(TopologyTest, JobStaysWithinOneLeaf) {
  EXPECT_EQ(choose(3, {0, 4, 5, 8, 9, 10, 12}), (Nodes{8, 9, 10}));
}

TEST_F(TopologyTest, LeafWithLeastRoomIsTaken) {
  EXPECT_EQ(choose(2, {0, 1, 2, 3, 4, 5, 8, 9, 10}), (Nodes{4, 5}));
}

TEST_F(TopologyTest, LoadDecidesBetweenLeavesWithEqualRoom) {
  loads_ = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 2, 2};
  EXPECT_EQ(choose(4, all()), (Nodes{8, 9, 10, 11}));
}

TEST_F(TopologyTest, SmallestSwitchWithRoomIsTaken) {
  EXPECT_EQ(choose(4, {0, 1, 2, 4, 8, 9, 12, 13}), (Nodes{0, 1, 2, 4}));
  EXPECT_EQ(choose(4, {0, 1, 4, 8, 9, 12, 13}), (Nodes{8, 9, 12, 13}));
}

TEST_F(TopologyTest, LargeJobUsesFewLeaves) {
  EXPECT_EQ(choose(7, {0, 4, 5, 6, 7, 8, 9, 10, 12, 13}), (Nodes{4, 5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(choose(16, all()), all());
  EXPECT_EQ(choose(17, all()), Nodes());
}

TEST_F(TopologyTest, MoreNodesMatterMoreThanFewLeaves) {
  EXPECT_EQ(choose(2, {0, 1, 2, 4, 5}, 5), (Nodes{0, 1, 2, 4, 5}));
}

TEST_F(TopologyTest, NodesOfNoSwitchAreUsedLast) {
  EXPECT_EQ(topology_.name_of(leaves_[17]), "");
  EXPECT_EQ(topology_.name_of(leaves_[5]), "b");
  EXPECT_EQ(choose(2, {16, 17, 0, 12}), (Nodes{0, 12}));
  EXPECT_EQ(choose(3, {16, 17, 0, 1, 4}), (Nodes{0, 1, 4}));
  EXPECT_EQ(choose(5, {16, 17, 0, 1, 4}), (Nodes{0, 1, 4, 16, 17}));
}

TEST_F(TopologyTest, LeavesOfNodesAreCounted) {
  EXPECT_EQ(count_leaves(leaves_, Nodes{0, 3}), 1U);
  EXPECT_EQ(count_leaves(leaves_, Nodes{0, 4, 15, 16}), 4U);
}

TEST(Topology, MistakesAreNamed) {
  EXPECT_EQ(error_of({{"a", {}, {}}}), "switch a: give either nodes or switches");
  EXPECT_EQ(error_of({{"a", {"n"}, {"b"}}, {"b", {"m"}, {}}}),
            "switch a: give either nodes or switches");
  EXPECT_EQ(error_of({{"a", {}, {"b"}}}), "switch a: there is no switch b");
  EXPECT_EQ(error_of({{"a", {"n"}, {}}, {"b", {"n"}, {}}}),
            "switch b: another switch has n already");
  EXPECT_EQ(error_of({{"a", {}, {"c"}}, {"b", {}, {"c"}}, {"c", {"n"}, {}}}),
            "switch b: another switch has switch c already");
  EXPECT_EQ(error_of({{"a", {}, {"b"}}, {"b", {}, {"a"}}}), "switch a is below itself");
  EXPECT_EQ(error_of({}), "");
}

TEST(Topology, WithoutSwitchesEveryNodeIsNear) {
  const Topology topology;
  EXPECT_TRUE(topology.empty());
  EXPECT_EQ(topology.leaf_of("n"), 0U);
}

// ---- in the cluster ---------------------------------------------------------------------------

// Nodes 0 to 3 are on one switch, 4 to 7 on another one.
Topology leaves_of_four(const Bench& b) {
  std::vector<Switch> switches = {{"a", {}, {}}, {"b", {}, {}}};
  for (std::uint32_t n = 0; n < 8; ++n) {
    switches[n / 4].nodes.push_back(b.infos.at(NodeId{n}).name);
  }
  return *Topology::make(switches);
}

struct TwoLeaves : Bench {
  TwoLeaves() : Bench(one_slot()) {
    add_nodes(8);
    take(cluster.set_topology(leaves_of_four(*this), now));
  }

  JobId submit_near(std::uint32_t nodes, Duration wait) {
    base::ResourceRequest request = on_nodes(nodes);
    request.switches = 1;
    request.switches_wait = wait;
    return submit(request);
  }
};

TEST(Switches, JobsAreOnFewOfThem) {
  TwoLeaves b;
  EXPECT_EQ(b.cluster.node(NodeId{5})->leaf_switch, "b");
  b.submit(Bench::on_nodes(3));
  EXPECT_EQ(b.view(b.submit(Bench::on_nodes(2))).nodes, (std::vector{NodeId{4}, NodeId{5}}));
  EXPECT_EQ(b.view(b.submit(Bench::on_nodes(1))).nodes, (std::vector{NodeId{3}}));
}

TEST(Switches, BoundEndsWithItsTime) {
  TwoLeaves b;
  b.submit(Bench::on_nodes(3));
  const JobId other = b.submit(Bench::on_nodes(3));
  const JobId job = b.submit_near(2, 10s);
  EXPECT_EQ(b.state(job), JobState::Pending);
  EXPECT_EQ(b.view(job).reasons.at(0),
            "waits for nodes within 1 switch, for 10s at most (--switches)");
  b.pass(11s);
  EXPECT_EQ(b.view(job).nodes, (std::vector{NodeId{3}, NodeId{7}}));
  const JobId patient = b.submit_near(2, 0s);
  b.finish(job);
  b.pass(1min);
  EXPECT_EQ(b.state(patient), JobState::Pending);
  b.finish(other);
  EXPECT_EQ(b.state(patient), JobState::Running);
}

TEST(Switches, BoundThatCannotHoldIsRefused) {
  TwoLeaves b;
  base::ResourceRequest request = Bench::on_nodes(5);
  request.switches = 1;
  EXPECT_EQ(b.cluster.check(request).error().context(),
            "requested nodes within 1 switch (--switches); it needs 2");
  request.switches = 2;
  EXPECT_TRUE(b.cluster.check(request));
  b.take(b.cluster.set_topology({}, b.now));
  request.switches = 1;
  EXPECT_TRUE(b.cluster.check(request));
}

}  // namespace
}  // namespace score::gang
