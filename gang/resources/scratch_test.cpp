// Tests the striped volumes of jobs through Cluster. Space is reserved on each node of a job and
// never overcommitted.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

class Scratch : public testing::TestWithParam<Placement> {
 protected:
  // Nodes 0 to 2 offer 100 and node 3 offers 40; all have two cores.
  Scratch() : b(with(GetParam())) {
    b.add_nodes(4, 2);
    for (std::uint32_t n = 0; n < 4; ++n) offer(n, n == 3 ? 40 : 100);
  }

  static ClusterConfig with(Placement placement) {
    ClusterConfig config;
    config.placement = placement;
    return config;
  }

  void offer(std::uint32_t node, std::uint64_t bytes) {
    b.infos[NodeId{node}].scratch = base::Bytes{bytes};
    b.connect(NodeId{node});
  }

  static base::ResourceRequest wants(std::uint64_t bytes, std::uint32_t nodes) {
    auto request = Bench::on_nodes(nodes);
    request.scratch = base::Bytes{bytes};
    return request;
  }

  // Requests as many nodes as hold the tasks.
  static base::ResourceRequest tasks_with(std::uint64_t bytes, std::uint32_t tasks) {
    base::ResourceRequest request;
    request.tasks = tasks;
    request.scratch = base::Bytes{bytes};
    return request;
  }

  std::string refusal(const base::ResourceRequest& request) {
    const auto checked = b.cluster.check(request);
    return checked ? "" : checked.error().context();
  }

  std::string why(JobId job) { return fmt::format("{}", fmt::join(b.view(job).reasons, "; ")); }

  base::Bytes reserved(std::uint32_t node) {
    return b.cluster.node(NodeId{node})->scratch_reserved;
  }

  Bench b;
};

TEST_P(Scratch, IsDividedAmongTheNodes) {
  const JobId job = b.submit(wants(200, 3));
  EXPECT_EQ(b.state(job), JobState::Running);
  for (const NodeId node : b.view(job).nodes) {
    EXPECT_EQ(b.cluster.node(node)->scratch_reserved, base::Bytes{67}) << "rounded up";
  }
  for (const auto& [node, prepare] : b.sent<base::PrepareTasks>()) {
    EXPECT_EQ(prepare.placed.scratch, base::Bytes{67});
  }
  b.finish(job);
  for (std::uint32_t n = 0; n < 4; ++n) EXPECT_EQ(reserved(n), base::Bytes{0});
}

TEST_P(Scratch, JobWaitsUntilThereIsRoom) {
  const JobId first = b.submit(wants(240, 3));
  const JobId second = b.submit(wants(90, 3));  // 30 each; 20 are left on nodes 0 to 2
  EXPECT_EQ(b.state(first), JobState::Running);
  EXPECT_EQ(b.state(second), JobState::Pending);
  EXPECT_NE(why(second).find("scratch: 30 per node is not free on node[00-02]"), std::string::npos)
      << why(second);
  const JobId third = b.submit(Bench::on_nodes(1));
  EXPECT_EQ(b.state(third), JobState::Running) << "it wants no scratch";
  b.finish(first);
  b.pass(1s);
  EXPECT_EQ(b.state(second), JobState::Running);
}

TEST_P(Scratch, JobGoesToNodesWithRoom) {
  const JobId job = b.submit(wants(50, 1));
  EXPECT_NE(b.view(job).nodes.at(0), NodeId{3});
  const JobId all = b.submit(wants(160, 4));
  EXPECT_EQ(b.view(all).nodes.size(), 4U);
}

TEST_P(Scratch, VolumeLargerThanTheClusterIsRefused) {
  EXPECT_EQ(refusal(wants(150, 1)),
            "requested 150 of scratch on 1 node; the largest node offers 100 (node00): -N 2 may "
            "fit");
  EXPECT_EQ(refusal(wants(150, 2)), "");
  EXPECT_NE(refusal(wants(250, 4)), "") << "node 3 has 40";
  EXPECT_NE(refusal(wants(301, 3)), "");
  EXPECT_NE(refusal(wants(UINT64_MAX, 1)).find("of scratch; the 4 nodes that can be used offer"),
            std::string::npos)
      << refusal(wants(UINT64_MAX, 1));
  for (std::uint32_t n = 0; n < 4; ++n) offer(n, 0);
  EXPECT_EQ(refusal(wants(1, 1)), "no node offers scratch ([pario] in its scored.toml)");
  auto overlay = wants(1, 1);
  overlay.overlay = true;
  EXPECT_NE(refusal(overlay), "");
}

TEST_P(Scratch, OpenNodeCountFollowsTheVolume) {
  const JobId few = b.submit(tasks_with(80, 2));
  EXPECT_EQ(b.view(few).nodes.size(), 1U) << "two cores and 80 are on one node";
  b.finish(few);
  const JobId more = b.submit(tasks_with(180, 2));
  ASSERT_EQ(b.view(more).nodes.size(), 2U);
  EXPECT_EQ(b.cluster.node(b.view(more).nodes[0])->scratch_reserved, base::Bytes{90});
  EXPECT_NE(refusal(tasks_with(250, 2)), "") << "two tasks are on two nodes at most";
}

TEST_P(Scratch, AllocationHasVolumeOnAllItsNodes) {
  auto request = wants(90, 3);
  request.allocation = true;
  const JobId job = b.submit(request);
  const auto prepares = b.sent<base::PrepareTasks>();
  ASSERT_EQ(prepares.size(), 3U);
  for (const auto& [node, prepare] : prepares) {
    EXPECT_EQ(prepare.placed.scratch, base::Bytes{30});
    EXPECT_EQ(prepare.placed.tasks_on_node, (std::vector<std::uint32_t>{1, 0, 0}));
  }
  EXPECT_EQ(b.state(job), JobState::Running);
  auto step = wants(10, 1);
  step.inside = job;
  EXPECT_NE(refusal(step).find("leave out --scratch"), std::string::npos);
  step.scratch = base::Bytes{0};
  EXPECT_EQ(refusal(step), "");
}

TEST_P(Scratch, NodeReconnectingWithLessLosesItsJobs) {
  const JobId job = b.submit(wants(80, 1));
  const NodeId node = b.view(job).nodes.at(0);
  offer(node.value(), 50);
  b.pass(1s);
  EXPECT_EQ(b.state(job), JobState::NodeFailed);
  EXPECT_EQ(reserved(node.value()), base::Bytes{0});
}

INSTANTIATE_TEST_SUITE_P(BothPolicies, Scratch, testing::Values(Placement::Matrix, Placement::Dqt));

}  // namespace
}  // namespace score::gang
