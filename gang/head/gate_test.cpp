// A gate decides which waiting jobs may have a place, in which order, and with which weight.
#include "gang/state/gate.hpp"

#include "tests/support/gang/cluster_bench.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

// SomeGate limits the number of placed jobs of an account and sets their rank and boost.
class SomeGate final : public Gate {
 public:
  bool is_open(const Job& job, std::size_t) const override {
    const auto most = at_once.find(job.request.account);
    const auto has = running.find(job.request.account);
    return most == at_once.end() || (has == running.end() ? 0 : has->second) < most->second;
  }

  std::string why_closed(const Job& job, std::size_t nodes) const override {
    return is_open(job, nodes) ? "" : "too many of " + job.request.account;
  }

  std::int64_t rank(const Job& job) const override {
    const auto found = ranks.find(job.request.account);
    return found == ranks.end() ? 0 : found->second;
  }

  std::uint32_t boost(const Job& job) const override {
    const auto found = boosts.find(job.request.account);
    return found == boosts.end() ? 1 : found->second;
  }

  void placed(const Job& job) override { ++running[job.request.account]; }

  void unplaced(const Job& job) override { --running[job.request.account]; }

  std::map<std::string, int> at_once, running;
  std::map<std::string, std::int64_t> ranks;
  std::map<std::string, std::uint32_t> boosts;
};

struct Gated {
  SomeGate gate;
  Bench b;

  explicit Gated(std::uint32_t nodes, std::uint32_t slots = 4) : b(with(slots)) {
    b.cluster.set_gate(gate);
    b.add_nodes(nodes);
  }

  static ClusterConfig with(std::uint32_t slots) {
    ClusterConfig config;
    config.max_slots = slots;
    return config;
  }

  JobId submit(const std::string& account, std::uint32_t nodes = 1) {
    base::ResourceRequest request = Bench::on_nodes(nodes);
    request.account = account;
    return b.submit(request);
  }
};

TEST(Gate, JobWaitsUntilGateIsOpen) {
  Gated g(2);
  g.gate.at_once["a"] = 1;
  const JobId first = g.submit("a");
  const JobId second = g.submit("a");
  const JobId other = g.submit("b");
  EXPECT_EQ(g.b.state(first), JobState::Running);
  EXPECT_EQ(g.b.state(second), JobState::Pending);
  EXPECT_EQ(g.b.view(second).reasons.at(0), "too many of a");
  EXPECT_EQ(g.b.state(other), JobState::Running) << "it passes";
  g.b.finish(first);
  EXPECT_EQ(g.b.state(second), JobState::Running);
  g.b.finish(second);
  EXPECT_EQ(g.gate.running["a"], 0);
}

TEST(Gate, NoRoomIsKeptBehindAClosedGate) {
  Gated g(2, 1);
  const JobId long_one = g.submit("b");
  g.gate.at_once["a"] = 1;
  const JobId wide = g.submit("a", 2);  // room is promised to it
  const JobId small = g.submit("b");
  EXPECT_EQ(g.b.state(wide), JobState::Pending);
  EXPECT_EQ(g.b.state(small), JobState::Pending) << "the other node is kept";
  g.gate.at_once["a"] = 0;
  g.b.take(g.b.cluster.reorder(g.b.now));
  EXPECT_EQ(g.b.state(small), JobState::Running);
  g.gate.at_once["a"] = 1;
  g.b.finish(long_one);
  g.b.finish(small);
  EXPECT_EQ(g.b.state(wide), JobState::Running);
}

TEST(Gate, SmallerRankGoesFirstWithinPriority) {
  Gated g(1, 1);
  const JobId running = g.submit("x");
  const JobId last = g.submit("heavy");
  g.gate.ranks = {{"heavy", 2}, {"light", 1}};
  const JobId light = g.submit("light");
  base::ResourceRequest request = Bench::on_nodes(1);
  request.account = "heavy";
  request.priority = 1;
  const JobId important = g.b.submit(request);
  g.b.take(g.b.cluster.reorder(g.b.now));
  g.b.finish(running);
  EXPECT_EQ(g.b.state(important), JobState::Running);
  g.b.finish(important);
  EXPECT_EQ(g.b.state(light), JobState::Running);
  g.b.finish(light);
  EXPECT_EQ(g.b.state(last), JobState::Running);
}

TEST(Gate, BoostGivesMoreSlices) {
  Gated g(1, 2);
  const JobId heavy = g.submit("heavy");
  const JobId light = g.submit("light");
  g.b.pass(1s);
  EXPECT_NEAR(g.b.view(light).share, 0.5, 0.01);
  g.gate.boosts = {{"light", 3}};
  g.b.take(g.b.cluster.reorder(g.b.now));
  g.b.pass(1s);
  EXPECT_NEAR(g.b.view(light).share, 0.75, 0.01);
  EXPECT_NEAR(g.b.view(heavy).share, 0.25, 0.01);
}

TEST(Gate, PlanShowsTheGatesReason) {
  Gated g(1);
  g.gate.at_once["a"] = 0;
  base::ResourceRequest request = Bench::on_nodes(1);
  request.account = "a";
  const auto plan = g.b.cluster.plan(request);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->state, JobState::Pending);
  EXPECT_EQ(plan->reasons.at(0), "too many of a");
}

}  // namespace
}  // namespace score::gang
