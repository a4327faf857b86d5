// Tests features and generic resources through Cluster.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

using Generic = std::vector<base::GenericResource>;
using Units = std::vector<std::vector<base::GenericShare>>;

constexpr base::Bytes kUnit{10};

class Gres : public testing::TestWithParam<Placement> {
 protected:
  // Nodes 0 and 1 have two gpus and are "fast"; 2 and 3 have none. All nodes have two cores.
  Gres() : b(with(GetParam())) {
    b.add_nodes(4, 2);
    for (const std::uint32_t n : {0U, 1U}) {
      b.infos[NodeId{n}].generic = {{"gpu", 2, kUnit}};
      b.infos[NodeId{n}].features = {"fast", n == 0 ? "left" : "right"};
    }
    for (std::uint32_t n = 0; n < 4; ++n) b.connect(NodeId{n});
  }

  static ClusterConfig with(Placement placement) {
    ClusterConfig config;
    config.placement = placement;
    return config;
  }

  void share(bool shared = true) {
    for (const std::uint32_t n : {0U, 1U}) {
      b.infos[NodeId{n}].generic[0].shared = shared;
      b.connect(NodeId{n});
    }
  }

  static base::ResourceRequest gpus(std::uint32_t count, std::uint32_t nodes = 1,
                                    base::Bytes memory = base::Bytes{0}) {
    auto request = Bench::on_nodes(nodes);
    request.generic = {{"gpu", count, memory}};
    return request;
  }

  static base::ResourceRequest of(std::vector<std::string> features, std::uint32_t nodes = 1) {
    auto request = Bench::on_nodes(nodes);
    request.features = std::move(features);
    return request;
  }

  std::string refusal(const base::ResourceRequest& request) {
    const auto checked = b.cluster.check(request);
    return checked ? "" : checked.error().context();
  }

  std::string why(JobId job) { return fmt::format("{}", fmt::join(b.view(job).reasons, "; ")); }

  Bench b;
};

TEST_P(Gres, JobsGoToNodesWithTheirFeatures) {
  EXPECT_EQ(b.view(b.submit(of({"right"}))).nodes, std::vector{NodeId{1}});
  EXPECT_EQ(b.view(b.submit(of({"fast", "right"}))).nodes, std::vector{NodeId{1}});
  EXPECT_EQ(b.view(b.submit(of({"left|right"}, 2))).nodes, (std::vector{NodeId{0}, NodeId{1}}));
}

TEST_P(Gres, RefusesFeaturesThatNoNodeHas) {
  EXPECT_EQ(refusal(of({"ib"})), "no node has feature 'ib'");
  EXPECT_EQ(refusal(of({"ib|opa"})), "no node has feature 'ib' or 'opa'");
  EXPECT_EQ(refusal(of({"left", "right"})), "no node has all of 'left&right'");
  EXPECT_EQ(refusal(of({"fast"}, 3)), "requested 3 nodes; constraint 'fast' leaves 2");
  auto excluding = of({"fast"}, 2);
  excluding.except_nodes = {"node00"};
  EXPECT_EQ(refusal(excluding),
            "requested 2 nodes; constraint 'fast' with the node lists leaves 1");
}

TEST_P(Gres, WaitsForNodesThatAreDown) {
  b.silent.insert(NodeId{1});
  b.pass(20s);
  const JobId job = b.submit(of({"right"}));
  EXPECT_EQ(b.state(job), JobState::Pending);
  EXPECT_EQ(why(job), "needs 1 node, 0 can be used; constraint right: node01; down: node01");
  b.silent.clear();
  b.connect(NodeId{1});
  EXPECT_EQ(b.state(job), JobState::Running);
}

TEST_P(Gres, UsesNewFeaturesOfReconnectedNode) {
  b.silent.insert(NodeId{1});
  b.pass(20s);
  const JobId job = b.submit(of({"right"}));
  b.silent.clear();
  b.infos[NodeId{1}].features = {"fast"};
  b.infos[NodeId{3}].features = {"right"};
  b.connect(NodeId{3});
  EXPECT_EQ(b.view(job).nodes, std::vector{NodeId{3}});
  b.connect(NodeId{1});
  EXPECT_EQ(refusal(of({"left", "right"})), "no node has all of 'left&right'");
}

TEST_P(Gres, GivesEachUnitToOneJob) {
  const JobId both = b.submit(gpus(2));
  EXPECT_EQ(b.view(both).units, (Units{{{"gpu", {0, 1}}}}));
  const NodeId first = b.view(both).nodes.at(0);
  const JobId one = b.submit(gpus(1));
  EXPECT_EQ(b.view(one).units, (Units{{{"gpu", {0}}}}));
  EXPECT_NE(b.view(one).nodes.at(0), first);
  const JobId wide = b.submit(gpus(1, 2));
  EXPECT_EQ(b.state(wide), JobState::Pending);
  EXPECT_EQ(why(wide), fmt::format("gpu:1 per node is not free on node{:02}", first.value()));
  EXPECT_EQ(b.cluster.node(first)->generic_used, (Generic{{"gpu", 2}}));
  b.finish(both);
  EXPECT_EQ(b.view(wide).units.size(), 2U);
  b.finish(one);
  b.finish(wide);
  EXPECT_TRUE(b.cluster.node(first)->generic_used.empty());
}

TEST_P(Gres, SendsTheUnitsToTheNodes) {
  b.submit(gpus(1));
  b.deaf = {NodeId{0}, NodeId{1}};
  b.submit(gpus(1, 2));
  const auto sent = b.sent<base::PrepareTasks>();
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].second.placed.generic, (std::vector<base::GenericShare>{{"gpu", {1}}}));
  EXPECT_EQ(sent[1].second.placed.generic, (std::vector<base::GenericShare>{{"gpu", {0}}}));
}

TEST_P(Gres, RefusesUnitsThatNoNodeHas) {
  EXPECT_EQ(refusal(gpus(3)), "requested 3 gpu per node; the node with most has 2 (node00)");
  EXPECT_EQ(refusal(gpus(1, 3)), "requested 3 nodes with gpu:1; 2 have that");
  EXPECT_EQ(refusal(gpus(1, 1, kUnit * 2)),
            "requested 20 of each gpu; the largest has 10 (node00)");
  auto request = gpus(1);
  request.generic[0].name = "fpga";
  EXPECT_EQ(refusal(request), "no node has generic resource 'fpga'; there are: gpu");
  auto apart = gpus(1);
  apart.except_nodes = {"node00", "node01"};
  EXPECT_EQ(refusal(apart), "no node has generic resource 'gpu'");
  auto overlay = gpus(1);
  overlay.overlay = true;
  EXPECT_EQ(refusal(overlay), "a job that takes no cores gets no generic resources");
}

// Jobs with a shared unit are in different rows and never run at the same time, even where their
// cores are free.
TEST_P(Gres, JobsTakeTurnsOnSharedUnits) {
  share();
  b.take(b.cluster.drain(NodeId{1}, "one node is enough", b.now).value());
  const JobId one = b.submit(gpus(2, 1, base::Bytes{4}));
  const JobId two = b.submit(gpus(2, 1, base::Bytes{6}));
  ASSERT_EQ(b.state(two), JobState::Running);
  EXPECT_NE(b.view(one).slot, b.view(two).slot);
  EXPECT_EQ(b.view(one).units, b.view(two).units);
  EXPECT_EQ(b.cluster.node(NodeId{0})->generic_used, (Generic{{"gpu", 2}}));
  b.pass(2s);
  int turns[2] = {0, 0};
  for (int i = 0; i < 100; ++i) {
    const TimePoint t = b.now + i * 10ms;
    const bool first = b.runs(NodeId{0}, one, t);
    const bool second = b.runs(NodeId{0}, two, t);
    EXPECT_NE(first, second);
    turns[0] += first;
    turns[1] += second;
  }
  EXPECT_GT(turns[0], 20);
  EXPECT_GT(turns[1], 20);
  const JobId three = b.submit(gpus(1, 1, base::Bytes{1}));
  EXPECT_EQ(b.state(three), JobState::Pending) << "the memory is given away";
  b.finish(one);
  EXPECT_EQ(b.state(three), JobState::Running);
}

TEST_P(Gres, JobWithoutMemoryRequestHasWholeUnit) {
  share();
  b.take(b.cluster.drain(NodeId{1}, "one node is enough", b.now).value());
  b.submit(gpus(2));
  EXPECT_EQ(b.state(b.submit(gpus(1, 1, base::Bytes{1}))), JobState::Pending);
}

TEST_P(Gres, JobsEndWhenTheirUnitsAreGone) {
  const JobId job = b.submit(gpus(2));
  const NodeId node = b.view(job).nodes.at(0);
  b.infos[node].generic[0].count = 1;
  b.connect(node, {{b.view(job).attempt, base::AttemptPhase::Running, {}, {}}});
  EXPECT_NE(b.state(job), JobState::Running);
}

TEST_P(Gres, RestartedHeadKeepsUnits) {
  const JobId job = b.submit(gpus(1));
  const JobView before = b.view(job);
  Bench again(with(GetParam()));
  again.infos = b.infos;
  for (const auto& [id, info] : again.infos) {
    ASSERT_TRUE(again.cluster.add_node(id, info.name));
  }
  RecoveredJob recovered;
  recovered.id = job;
  recovered.request = before.request;
  recovered.state = JobState::Running;
  recovered.attempt = before.attempt;
  recovered.nodes = before.nodes;
  recovered.cores = before.cores;
  recovered.tasks_on_node = before.tasks_on_node;
  recovered.units = {{{"gpu", {1}}}};
  again.take(again.cluster.recover({recovered}, again.now));
  again.connect(before.nodes.at(0), {{before.attempt, base::AttemptPhase::Running, {}, {}}});
  for (const auto& [id, info] : again.infos) {
    if (id != before.nodes.at(0)) again.connect(id);
  }
  again.last_job = job.value();
  EXPECT_EQ(again.view(job).units, recovered.units);
  EXPECT_EQ(again.state(job), JobState::Running);
  auto request = gpus(1);
  request.only_nodes = {again.infos.at(before.nodes.at(0)).name};
  EXPECT_EQ(again.view(again.submit(request)).units, (Units{{{"gpu", {0}}}}));
}

// Jobs that need less must not pass the first in the queue for ever.
TEST_P(Gres, UnitsAreKeptForFirstInQueue) {
  b.take(b.cluster.drain(NodeId{1}, "one node is enough", b.now).value());
  const JobId running = b.submit(gpus(1));
  const JobId first = b.submit(gpus(2));
  const JobId small = b.submit(gpus(1));
  EXPECT_EQ(b.state(first), JobState::Pending);
  EXPECT_EQ(b.state(small), JobState::Pending);
  b.finish(running);
  EXPECT_EQ(b.state(first), JobState::Running);
}

TEST_P(Gres, StepsDivideTheUnitsOfTheirJob) {
  auto held = gpus(2);
  held.allocation = true;
  held.tasks_per_node = 2;
  held.only_nodes = {b.infos.at(NodeId{0}).name};
  const JobId job = b.submit(held);
  b.pass(100ms);
  base::ResourceRequest step;
  step.inside = job;
  step.tasks = 1;
  const JobId all = b.submit(step);
  step.generic = {{"gpu", 1}};
  step.overlap = false;
  const JobId first = b.submit(step);
  EXPECT_EQ(b.view(first).units, (Units{{{"gpu", {0}}}}));
  b.finish(all);
  const JobId second = b.submit(step);
  EXPECT_EQ(b.view(second).units, (Units{{{"gpu", {1}}}}));
  const auto sent = b.sent<base::PrepareTasks>();
  EXPECT_EQ(sent.back().second.placed.generic, (std::vector<base::GenericShare>{{"gpu", {1}}}));
  b.finish(first);
  step.generic = {{"gpu", 2}};
  const JobId both = b.submit(step);
  EXPECT_EQ(b.state(both), JobState::Pending);
  EXPECT_EQ(why(both), fmt::format("other steps use the cores or units of job {}", job));
  b.finish(second);
  EXPECT_EQ(b.view(both).units, (Units{{{"gpu", {0, 1}}}}));
  EXPECT_EQ(b.cluster.node(NodeId{0})->generic_used, (Generic{{"gpu", 2}})) << "the job's";
}

TEST_P(Gres, StepCannotHaveMoreUnitsThanItsJob) {
  auto held = gpus(1);
  held.allocation = true;
  const JobId job = b.submit(held);
  b.pass(100ms);
  base::ResourceRequest step;
  step.inside = job;
  step.tasks = 1;
  step.generic = {{"gpu", 2}};
  EXPECT_EQ(refusal(step), fmt::format("the step needs gpu:2 per node; job {} has 1", job));
  step.generic = {{"nic", 1}};
  EXPECT_EQ(refusal(step), fmt::format("the step needs nic:1 per node; job {} has 0", job));
  step.generic = {{"gpu", 1, kUnit}};
  EXPECT_NE(refusal(step).find("leave out mem="), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Policies, Gres, testing::Values(Placement::Matrix, Placement::Dqt),
                         [](const auto& suite) {
                           return suite.param == Placement::Matrix ? "matrix" : "dqt";
                         });

}  // namespace
}  // namespace score::gang
