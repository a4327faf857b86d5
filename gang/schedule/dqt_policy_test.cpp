#include "gang/schedule/dqt_policy.hpp"

#include "gang/schedule/layout.hpp"
#include "tests/support/gang/schedule_bench.hpp"

namespace score::gang {
namespace {

using Nodes = std::vector<NodeIndex>;

struct DqtBench : ScheduleBench {
  explicit DqtBench(std::uint32_t nodes) : ScheduleBench(nodes, 1, with_dqt()) {}

  static ClusterConfig with_dqt() {
    ClusterConfig config;
    config.placement = Placement::Dqt;
    return config;
  }

  [[nodiscard]] std::size_t row_of(const Job& job) const {
    return *placer.matrix().position(job.home);
  }
};

TEST(Dqt, TakesTheSmallestPartitionThatHoldsTheJob) {
  DqtBench b(8);
  EXPECT_EQ(b.add(ScheduleBench::on_nodes(1)).cells.nodes, (Nodes{0}));
  EXPECT_EQ(b.add(ScheduleBench::on_nodes(2)).cells.nodes, (Nodes{2, 3}));
  EXPECT_EQ(b.add(ScheduleBench::on_nodes(3)).cells.nodes, (Nodes{4, 5, 6}));
  EXPECT_EQ(b.add(ScheduleBench::on_nodes(8)).cells.nodes.size(), 8U);
}

TEST(Dqt, TakesPartitionWithLeastLoadOnItsPath) {
  DqtBench b(4);
  b.add(ScheduleBench::on_nodes(4));
  b.add(ScheduleBench::on_nodes(2));
  EXPECT_EQ(b.add(ScheduleBench::on_nodes(2)).cells.nodes, (Nodes{2, 3}));
  EXPECT_EQ(b.add(ScheduleBench::on_nodes(1)).cells.nodes, (Nodes{0}));
  EXPECT_EQ(b.add(ScheduleBench::on_nodes(2)).cells.nodes, (Nodes{2, 3}));
}

// The queue of the root has the first rows, then the queues of its halves share the next ones.
TEST(Dqt, GivesRowsFromTheRootDown) {
  DqtBench b(4);
  const Job& left = b.add(ScheduleBench::on_nodes(2));
  const Job& right = b.add(ScheduleBench::on_nodes(2));
  const Job& right_too = b.add(ScheduleBench::on_nodes(1));
  const Job& all = b.add(ScheduleBench::on_nodes(4));
  b.placer.capacity_grew();
  b.placer.place_waiting(b.step.now);
  EXPECT_EQ(b.row_of(all), 0U);
  EXPECT_EQ(b.row_of(left), 1U);
  EXPECT_EQ(b.row_of(right), 1U);
  EXPECT_EQ(b.row_of(right_too), 2U);
  EXPECT_EQ(b.placer.matrix().row_count(), 3U);
  const auto sound = b.placer.check();
  EXPECT_TRUE(sound) << sound.error().message();
}

// This is the standard case of the queue tree: {A} at the root, {B} left, {C, D} right. The round
// has three slices, and B gets both slices that its sibling needs.
TEST(Dqt, LighterPartitionRepeatsItsRound) {
  DqtBench b(4);
  const Job& a = b.run(ScheduleBench::on_nodes(4));
  const Job& left = b.run(ScheduleBench::on_nodes(2));
  const Job& c = b.run(ScheduleBench::on_nodes(2));
  b.tables.nodes.drain(0, "", b.step);  // D must go to the right
  const Job& d = b.run(ScheduleBench::on_nodes(2));
  const CycleLayout layout = lay_out(b.tables.jobs, b.placer.matrix(), true);
  EXPECT_EQ(layout.rows.size(), 3U);
  EXPECT_EQ(layout.runs_in.at(a.id).size(), 1U);
  EXPECT_EQ(layout.runs_in.at(left.id).size(), 2U);
  EXPECT_EQ(layout.runs_in.at(c.id).size(), 1U);
  EXPECT_EQ(layout.runs_in.at(d.id).size(), 1U);
}

TEST(Dqt, TakesLargerPartitionIfNodesAreMissing) {
  DqtBench b(4);
  b.tables.nodes.drain(0, "", b.step);
  b.tables.nodes.drain(3, "", b.step);
  EXPECT_EQ(b.add(ScheduleBench::on_nodes(2)).cells.nodes, (Nodes{1, 2}));
}

}  // namespace
}  // namespace score::gang
