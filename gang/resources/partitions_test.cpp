// Jobs run on the nodes of their partition only, and wait for licenses of the cluster.
#include "tests/support/gang/cluster_bench.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using Reasons = std::vector<std::string>;

// The cluster has four nodes: "left" has 00 and 01, "right" 01 to 03, "all" every one.
struct Parted {
  Bench b;

  explicit Parted(ClusterConfig config = {}) : b(config) {
    b.add_nodes(4);
    set({{"all", {"node00", "node01", "node02", "node03"}},
         {"left", {"node00", "node01"}},
         {"right", {"node01", "node02", "node03"}, 5}});
  }

  void set(std::vector<Partition> all) { b.take(b.cluster.set_partitions(std::move(all), b.now)); }

  static base::ResourceRequest in(const std::string& partition, std::uint32_t nodes = 1) {
    base::ResourceRequest request = Bench::on_nodes(nodes);
    request.partition = partition;
    return request;
  }

  [[nodiscard]] std::vector<std::uint32_t> places(JobId job) const {
    std::vector<std::uint32_t> out;
    for (const NodeId node : b.view(job).nodes) out.push_back(node.value());
    return out;
  }

  [[nodiscard]] std::string refusal(const base::ResourceRequest& request) const {
    const auto checked = b.cluster.check(request);
    return checked ? "" : checked.error().context();
  }
};

using Numbers = std::vector<std::uint32_t>;

TEST(Partitions, JobsRunOnTheirNodes) {
  Parted p;
  EXPECT_EQ(p.places(p.b.submit(Parted::in("left", 2))), (Numbers{0, 1}));
  EXPECT_EQ(p.places(p.b.submit(Parted::in("right", 3))), (Numbers{1, 2, 3}));
  EXPECT_EQ(p.places(p.b.submit(Parted::in("all", 4))), (Numbers{0, 1, 2, 3}));
  p.b.pass(1s);
  const JobView two = p.b.view(JobId{2});
  EXPECT_EQ(two.state, JobState::Running) << "node01 is shared in time";
  EXPECT_LT(two.share, 1.0);
}

TEST(Partitions, ImpossibleJobIsRefusedWithOneLine) {
  Parted p;
  EXPECT_EQ(p.refusal(Parted::in("middle")), "no partition middle: there are all, left, right");
  EXPECT_EQ(p.refusal(Parted::in("left", 3)), "requested 3 nodes; partition left has 2");
  auto request = Parted::in("left", 2);
  request.except_nodes = {"node00"};
  EXPECT_EQ(p.refusal(request), "requested 2 nodes; the node lists in partition left leave 1");
  request.features = {"fast"};
  EXPECT_EQ(p.refusal(request), "no node has feature 'fast'");
  p.set({});
  EXPECT_EQ(p.refusal(Parted::in("left")), "no partition left: this cluster has no partitions");
}

TEST(Partitions, OrderGoesBeforePriority) {
  Parted p(one_slot());
  const JobId running = p.b.submit(Bench::on_nodes(4));
  auto request = Parted::in("all", 4);
  request.priority = 100;
  const JobId important = p.b.submit(request);
  const JobId ordered = p.b.submit(Parted::in("right", 3));
  p.b.finish(running);
  EXPECT_EQ(p.b.state(ordered), JobState::Running);
  EXPECT_EQ(p.b.state(important), JobState::Pending);
  p.b.finish(ordered);
  EXPECT_EQ(p.b.state(important), JobState::Running);
}

TEST(Partitions, WaitingJobSurvivesChanges) {
  Parted p(one_slot());
  const JobId running = p.b.submit(Parted::in("left", 2));
  const JobId waiting = p.b.submit(Parted::in("left", 2));
  EXPECT_EQ(p.b.state(waiting), JobState::Pending);
  p.set({{"right", {"node02"}}});
  EXPECT_EQ(p.b.state(running), JobState::Running) << "it keeps its place";
  EXPECT_EQ(p.b.view(waiting).reasons.front(), "partition left was removed from the configuration");
  p.b.finish(running);
  EXPECT_EQ(p.b.state(waiting), JobState::Pending);
  p.set({{"left", {"node03"}}});
  EXPECT_EQ(p.b.view(waiting).reasons.front(), "partition left now has 1 node, the job needs 2");
  p.b.expect_ok(p.b.cluster.hold(waiting, p.b.now));
  p.b.expect_ok(p.b.cluster.release(waiting, p.b.now));
  EXPECT_EQ(p.b.state(waiting), JobState::Pending);
  p.set({{"left", {"node02", "node03"}}});
  EXPECT_EQ(p.places(waiting), (Numbers{2, 3}));
}

TEST(Partitions, ReasonNamesThePartition) {
  Parted p(one_slot());
  p.b.submit(Parted::in("left", 2));
  const JobId waiting = p.b.submit(Parted::in("left", 1));
  EXPECT_EQ(p.b.view(waiting).reasons,
            (Reasons{"partition left: node[00-01]", "too few free cores in each of the 1 slot"}));
}

TEST(Partitions, JobOfRemovedPartitionSurvivesRestart) {
  Parted p;
  RecoveredJob old;
  old.id = JobId{7};
  old.request = Parted::in("gone", 2);
  p.b.take(p.b.cluster.recover({old}, p.b.now));
  EXPECT_EQ(p.b.state(old.id), JobState::Pending);
  p.b.connect(NodeId{2});
  EXPECT_EQ(p.b.state(old.id), JobState::Pending) << "a node connects later";
  p.set({{"gone", {"node00", "node03"}}});
  EXPECT_EQ(p.places(old.id), (Numbers{0, 3}));
}

// ---- licenses

struct Licensed {
  Bench b;

  explicit Licensed(std::uint32_t total, bool release_suspended = false, ClusterConfig config = {})
      : b(config) {
    b.add_nodes(4);
    b.take(b.cluster.set_licenses({{"a", total}}, release_suspended, b.now));
  }

  static base::ResourceRequest with(std::uint32_t count, std::uint32_t nodes = 1) {
    base::ResourceRequest request = Bench::on_nodes(nodes);
    request.licenses = {{"a", count}};
    return request;
  }

  [[nodiscard]] std::uint64_t used() const { return b.cluster.licenses().all().at("a").used; }
};

TEST(ClusterLicenses, JobWaitsUntilTheyAreFree) {
  Licensed l(3);
  const JobId first = l.b.submit(Licensed::with(2));
  const JobId second = l.b.submit(Licensed::with(2));
  EXPECT_EQ(l.b.state(second), JobState::Pending);
  EXPECT_EQ(l.b.view(second).reasons, Reasons{"license a: needs 2, 1 of 3 free"});
  EXPECT_EQ(l.b.cluster.waiting_for_licenses().at("a"), 1U);
  const JobId none = l.b.submit(Bench::on_nodes(4));
  EXPECT_EQ(l.b.state(none), JobState::Running);
  l.b.finish(first);
  EXPECT_EQ(l.b.state(second), JobState::Running);
  EXPECT_EQ(l.used(), 2U);
  l.b.cancel(second);
  EXPECT_EQ(l.used(), 0U);
  const auto plan = l.b.cluster.plan(Licensed::with(4));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().context(), "requested 4 of license a; the cluster has 3");
}

TEST(ClusterLicenses, FewDoNotPassMany) {
  Licensed l(3);
  const JobId first = l.b.submit(Licensed::with(1));
  const JobId many = l.b.submit(Licensed::with(3));
  const JobId few = l.b.submit(Licensed::with(1));
  EXPECT_EQ(l.b.state(few), JobState::Pending);
  EXPECT_EQ(l.b.view(few).reasons,
            Reasons{"license a: 3 kept for job 2, which is ahead in the queue"});
  l.b.finish(first);
  EXPECT_EQ(l.b.state(many), JobState::Running);
  l.b.cancel(many);
  EXPECT_EQ(l.b.state(few), JobState::Running);
}

// A job that cannot be placed keeps no licenses, and one that leaves the queue no longer does.
TEST(ClusterLicenses, AreNotKeptForJobsThatLackMore) {
  Licensed l(3, false, one_slot());
  const JobId holder = l.b.submit(Licensed::with(1));
  const JobId wide = l.b.submit(Licensed::with(3, 4));
  const JobId few = l.b.submit(Licensed::with(1));
  EXPECT_EQ(l.b.state(wide), JobState::Pending);
  EXPECT_EQ(l.b.state(few), JobState::Running) << "the other lacks nodes too";
  l.b.finish(few);
  l.b.finish(holder);
  EXPECT_EQ(l.b.state(wide), JobState::Running);
}

TEST(ClusterLicenses, WithdrawnJobKeepsNone) {
  Licensed l(3);
  l.b.submit(Licensed::with(1));
  const JobId many = l.b.submit(Licensed::with(3));
  const JobId few = l.b.submit(Licensed::with(1));
  l.b.expect_ok(l.b.cluster.hold(many, l.b.now));
  EXPECT_EQ(l.b.state(few), JobState::Running);
  l.b.expect_ok(l.b.cluster.release(many, l.b.now));
  EXPECT_EQ(l.b.state(many), JobState::Pending);
}

TEST(ClusterLicenses, SuspendedJobKeepsThemByDefault) {
  Licensed l(2);
  const JobId first = l.b.submit(Licensed::with(2));
  const JobId second = l.b.submit(Licensed::with(1));
  l.b.expect_ok(l.b.cluster.suspend(first, l.b.now));
  EXPECT_EQ(l.b.state(second), JobState::Pending);
  l.b.expect_ok(l.b.cluster.resume(first, l.b.now));
  EXPECT_EQ(l.used(), 2U);
}

TEST(ClusterLicenses, SuspendedJobReleasesThemIfConfigured) {
  Licensed l(2, true);
  const JobId first = l.b.submit(Licensed::with(2));
  const JobId second = l.b.submit(Licensed::with(1));
  l.b.expect_ok(l.b.cluster.suspend(first, l.b.now));
  EXPECT_EQ(l.b.state(second), JobState::Running);
  const auto refused = l.b.cluster.resume(first, l.b.now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(l.b.state(first), JobState::Suspended);
  EXPECT_EQ(l.used(), 1U);
  l.b.finish(second);
  l.b.expect_ok(l.b.cluster.resume(first, l.b.now));
  EXPECT_EQ(l.used(), 2U);
  l.b.finish(first);
  EXPECT_EQ(l.used(), 0U);
}

TEST(ClusterLicenses, ReloadAppliesToWaitingAndSuspendedJobs) {
  Licensed l(1);
  const JobId first = l.b.submit(Licensed::with(1));
  const JobId second = l.b.submit(Licensed::with(1));
  l.b.take(l.b.cluster.set_licenses({{"a", 2}}, false, l.b.now));
  EXPECT_EQ(l.b.state(second), JobState::Running);
  l.b.expect_ok(l.b.cluster.suspend(first, l.b.now));
  l.b.take(l.b.cluster.set_licenses({{"a", 2}}, true, l.b.now));
  EXPECT_EQ(l.used(), 1U);
}

}  // namespace
}  // namespace score::gang
