// Tests how what the nodes report of an attempt becomes what its job used.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

base::Usage some_usage(Duration cpu, std::uint64_t memory) {
  base::Usage usage;
  usage.cpu_user = cpu;
  usage.memory_peak = base::Bytes(memory);
  usage.memory_peak_sum = base::Bytes(memory);
  return usage;
}

base::Exited exited(const JobView& v, std::uint32_t rank, const base::Usage& usage) {
  return {v.attempt, {{base::Rank{rank}, 0, 0}}, "", 1s, 0, usage};
}

TEST(JobUsage, NodesAreAddedUp) {
  Bench b;
  b.add_nodes(2);
  const JobId job = b.submit(Bench::on_nodes(2));
  b.pass(500ms);
  const JobView v = b.view(job);
  b.say(v.nodes.at(0), exited(v, 0, some_usage(3s, 400)));
  b.say(v.nodes.at(0), exited(v, 0, some_usage(3s, 400)));
  EXPECT_EQ(b.view(job).usage.cpu_user, 3s) << "a report that is repeated counts once";
  b.say(v.nodes.at(1), exited(v, 1, some_usage(4s, 300)));
  EXPECT_EQ(b.view(job).usage.cpu_user, 7s);
  EXPECT_EQ(b.view(job).usage.memory_peak, base::Bytes(400));
  EXPECT_EQ(b.view(job).usage.memory_peak_sum, base::Bytes(700));
}

TEST(JobUsage, RestartedHeadCountsNothingTwice) {
  Bench old;
  old.add_nodes(2);
  const JobId job = old.submit(Bench::on_nodes(2));
  old.pass(500ms);
  const JobView before = old.view(job);
  const auto report = exited(before, 0, some_usage(3s, 400));
  old.say(before.nodes.at(0), report);
  Bench b;
  b.now = old.now + 1s;
  b.last_job = old.last_job;
  for (std::uint32_t i = 0; i < 2; ++i) {
    b.infos[NodeId{i}] = old.infos[NodeId{i}];
    ASSERT_TRUE(b.cluster.add_node(NodeId{i}, b.infos[NodeId{i}].name));
  }
  b.take(b.cluster.recover({stored_job(old.view(job))}, b.now));
  b.connect(before.nodes.at(0),
            {{before.attempt, base::AttemptPhase::Exited, report.exits, "", 1s, 0, report.usage}});
  EXPECT_EQ(b.view(job).usage.cpu_user, 3s);
  EXPECT_EQ(b.view(job).filled, 1s);
}

TEST(JobUsage, EndedStepsCountInTheirJob) {
  Bench b;
  b.add_nodes(1, 2);
  auto request = Bench::on_nodes(1, 2);
  request.allocation = true;
  const JobId job = b.submit(request);
  base::ResourceRequest step;
  step.inside = job;
  step.tasks = 1;
  for (const Duration used : {Duration{2s}, Duration{5s}}) {
    const JobId id = b.submit(step);
    b.pass(500ms);
    const JobView v = b.view(id);
    b.say(v.nodes.at(0), exited(v, 0, some_usage(used, 100)));
  }
  EXPECT_EQ(b.view(job).usage.cpu_user, 7s);
  EXPECT_EQ(b.view(job).usage.memory_peak_sum, base::Bytes(100)) << "they ran one after the other";
  EXPECT_EQ(stored_job(b.view(job)).steps_usage.cpu_user, 7s);
}

TEST(JobUsage, LostNodesAreMarked) {
  Bench b;
  b.add_nodes(2);
  const JobId job = b.submit(Bench::on_nodes(2));
  b.pass(500ms);
  const JobView v = b.view(job);
  b.silent.insert(v.nodes.at(1));
  b.pass(60s);
  b.say(v.nodes.at(0), exited(v, 0, some_usage(3s, 400)));
  EXPECT_EQ(b.view(job).usage.nodes_unknown, 1U);
}

}  // namespace
}  // namespace score::gang
