// Tests where jobs are placed and why they wait (rows, memory, exclusive nodes), and restarts of
// the head.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

std::vector<std::uint32_t> nodes_of(const Bench& b, JobId job) {
  std::vector<std::uint32_t> out;
  for (const NodeId node : b.view(job).nodes) out.push_back(node.value());
  return out;
}

TEST(Placement, PrefersRowWithRoomAndLeastLoadedNodes) {
  Bench b;
  b.add_nodes(4);
  const JobId first = b.submit(Bench::on_nodes(2));
  const JobId second = b.submit(Bench::on_nodes(2));
  const JobId third = b.submit(Bench::on_nodes(1));
  EXPECT_EQ(nodes_of(b, first), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(nodes_of(b, second), (std::vector<std::uint32_t>{2, 3}));
  EXPECT_EQ(b.view(first).slot, b.view(second).slot);
  EXPECT_EQ(b.view(third).slot, base::SlotIndex{1});
  EXPECT_EQ(nodes_of(b, third), (std::vector<std::uint32_t>{0}));
}

TEST(Placement, PlanEqualsSubmissionAndChangesNothing) {
  Bench b;
  b.add_nodes(2, 2);
  const JobId first = b.submit(Bench::on_nodes(2));
  const auto beside = b.cluster.plan(Bench::on_nodes(2));
  ASSERT_TRUE(beside);
  EXPECT_EQ(beside->state, JobState::Launching);
  EXPECT_EQ(beside->nodes.size(), 2U);
  EXPECT_EQ(beside->slot, base::SlotIndex{0}) << "there is a core left on each";
  auto wide = Bench::on_nodes(2);
  wide.cpus_per_task = 2;
  EXPECT_EQ(b.cluster.plan(wide)->slot, base::SlotIndex{1}) << "a new one";
  wide.queue = base::Queue::Exclusive;
  const auto waits = b.cluster.plan(wide);
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->state, JobState::Pending);
  EXPECT_TRUE(waits->nodes.empty());
  ASSERT_FALSE(waits->reasons.empty());
  wide.held = true;
  EXPECT_EQ(b.cluster.plan(wide)->reasons.at(0), "held until it is released");
  EXPECT_FALSE(b.cluster.plan(Bench::on_nodes(3))) << "could never be";
  EXPECT_EQ(b.cluster.jobs(), std::vector{first});
}

TEST(Placement, TasksShareTooFewCoresEvenly) {
  Bench b;
  b.add_nodes(2, 2);
  base::ResourceRequest request;
  request.tasks = 64;
  const JobView crowd = b.view(b.submit(request));
  EXPECT_EQ(crowd.state, JobState::Running);
  EXPECT_EQ(crowd.tasks_on_node, (std::vector<std::uint32_t>{32, 32}));
  EXPECT_EQ(crowd.cores, (std::vector<std::vector<std::uint32_t>>{{0, 1}, {0, 1}}));
  EXPECT_EQ(crowd.tasks_per_core, 16U);
  const JobId beside = b.submit(request);
  EXPECT_EQ(b.view(beside).slot, base::SlotIndex{1}) << "a gang as any other";
  b.pass(1s);
  EXPECT_EQ(b.view(beside).share, 0.5);
  EXPECT_EQ(b.cluster.plan(request)->tasks_per_core, 16U);
}

struct Sharing {
  const char* name;
  void (*change)(base::ResourceRequest&);
  std::uint32_t tasks_per_core;
  std::vector<std::uint32_t> tasks_on_node, cores_on_node;
};

TEST(Placement, FewestPossibleTasksShareACore) {
  const Sharing cases[] = {
      {"all have their own", [](auto& r) { r.tasks = 4; }, 1, {2, 2}, {2, 2}},
      {"one too many", [](auto& r) { r.tasks = 5; }, 2, {3, 2}, {2, 1}},
      {"said how many a node",
       [](auto& r) { r.nodes = 2, r.tasks_per_node = 3; },
       2,
       {3, 3},
       {2, 2}},
      {"on one node", [](auto& r) { r.nodes = 1, r.tasks = 3; }, 2, {3}, {2}},
      {"of two cores each", [](auto& r) { r.tasks = 6, r.cpus_per_task = 2; }, 3, {3, 3}, {2, 2}},
      {"as many nodes as there are",
       [](auto& r) { r.nodes = 1, r.most_nodes = 2, r.tasks = 7; },
       2,
       {4, 3},
       {2, 2}},
  };
  for (const Sharing& c : cases) {
    Bench b;
    b.add_nodes(2, 2);
    base::ResourceRequest request;
    c.change(request);
    const JobView job = b.view(b.submit(request));
    EXPECT_EQ(job.tasks_per_core, c.tasks_per_core) << c.name;
    EXPECT_EQ(job.tasks_on_node, c.tasks_on_node) << c.name;
    std::vector<std::uint32_t> cores;
    for (const auto& on_node : job.cores)
      cores.push_back(static_cast<std::uint32_t>(on_node.size()));
    EXPECT_EQ(cores, c.cores_on_node) << c.name;
  }
}

TEST(Placement, NoTasksShareACoreWithoutOvercommit) {
  ClusterConfig config;
  config.overcommit = false;
  Bench b(config);
  b.add_nodes(2, 2);
  base::ResourceRequest request;
  request.tasks = 5;
  EXPECT_FALSE(b.cluster.check(request));
  b.expect_ok(b.cluster.set(base::Setting::Overcommit, true, b.now));
  EXPECT_TRUE(b.cluster.check(request));
  request.own_cores = true;
  EXPECT_FALSE(b.cluster.check(request));
}

// The number of tasks per core is known when all nodes are seen; until then the job waits.
TEST(Placement, SharingFollowsTheHardwareThatConnects) {
  Bench b;
  for (std::uint32_t id = 0; id < 2; ++id) {
    const std::string name = fmt::format("node{:02}", id);
    ASSERT_TRUE(b.cluster.add_node(NodeId{id}, name));
    b.infos[NodeId{id}] = {name, 2, 4_GiB};
  }
  base::ResourceRequest request;
  request.tasks = 12;
  const JobId job = b.submit(request);
  EXPECT_EQ(b.state(job), JobState::Pending);
  b.connect(NodeId{0});
  b.connect(NodeId{1});
  EXPECT_EQ(b.state(job), JobState::Running);
  EXPECT_EQ(b.view(job).tasks_per_core, 3U);
}

TEST(Placement, SlotUnificationUsesAllUsableCores) {
  Bench b;
  b.add_nodes(4);
  const JobId left = b.submit(Bench::on_nodes(2));
  const JobId right = b.submit(Bench::on_nodes(2));
  const JobId third = b.submit(Bench::on_nodes(2));  // shares with the left one
  b.pass(1s);
  EXPECT_EQ(b.view(left).share, 0.5);
  EXPECT_EQ(b.view(third).share, 0.5);
  EXPECT_EQ(b.view(right).share, 1.0);
  EXPECT_EQ(b.view(right).rows_used, 2U);
}

TEST(Placement, JobsMoveDownAndEmptyRowsAreDropped) {
  Bench b;
  b.add_nodes(2);
  const JobId first = b.submit(Bench::on_nodes(2));
  const JobId second = b.submit(Bench::on_nodes(2));
  const JobId third = b.submit(Bench::on_nodes(2));
  b.pass(1s);
  b.finish(first);
  b.pass(1s);
  EXPECT_EQ(b.view(second).slot->value() + b.view(third).slot->value(), 1U);
  EXPECT_EQ(b.cluster.matrix().slices.size(), 2U);
}

TEST(Placement, OnlyChangedColumnsAreSent) {
  Bench b;
  b.add_nodes(4);
  b.submit(Bench::on_nodes(2));
  b.pass(1s);
  b.submit(Bench::on_nodes(2));
  for (const auto& [node, message] : b.sent<base::SetTimetable>()) EXPECT_GE(node.value(), 2U);
  EXPECT_EQ(b.sent<base::SetTimetable>().size(), 2U);
}

TEST(Placement, MemoryIsNeverOvercommitted) {
  Bench b;
  b.add_nodes(1, 1, 8_GiB);
  base::ResourceRequest request = Bench::on_nodes(1);
  request.memory_per_node = 5_GiB;
  const JobId first = b.submit(request);
  const JobId second = b.submit(request);
  EXPECT_EQ(b.state(second), JobState::Pending);
  EXPECT_EQ(b.view(second).reasons.at(0), "memory: 5G per node is not free on node00");
  b.finish(first);
  EXPECT_EQ(b.state(second), JobState::Running);
}

TEST(Placement, FullMatrixIsNamedAsWaitReason) {
  ClusterConfig config;
  config.max_slots = 2;
  Bench b(config);
  b.add_nodes(1);
  b.submit(Bench::on_nodes(1));
  b.submit(Bench::on_nodes(1));
  const JobId waits = b.submit(Bench::on_nodes(1));
  EXPECT_EQ(b.view(waits).reasons.at(0), "too few free cores in each of the 2 slots");
  b.expect_ok(b.cluster.set(base::Setting::Slots, 3, b.now));
  EXPECT_EQ(b.state(waits), JobState::Running);
}

TEST(Placement, ExclusiveJobsDoNotShareOrStarve) {
  Bench b;
  b.add_nodes(2);
  const JobId running = b.submit(Bench::on_nodes(2));
  base::ResourceRequest request = Bench::on_nodes(1);
  request.queue = base::Queue::Exclusive;
  const JobId alone = b.submit(request);
  EXPECT_EQ(b.state(alone), JobState::Pending);
  EXPECT_EQ(b.view(alone).reasons.at(0), "exclusive: other jobs hold node[00-01]");
  // Younger jobs pass, but not onto the node that was promised.
  const JobId passes = b.submit(Bench::on_nodes(1));
  const JobId too_large = b.submit(Bench::on_nodes(2));
  EXPECT_EQ(nodes_of(b, passes), (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(b.state(too_large), JobState::Pending);
  b.finish(running);
  EXPECT_EQ(b.state(alone), JobState::Running);
  EXPECT_EQ(nodes_of(b, alone), (std::vector<std::uint32_t>{0}));
  b.pass(1s);
  EXPECT_EQ(b.view(alone).share, 1.0);
}

TEST(Placement, LargeJobAheadIsNotPassedForEver) {
  ClusterConfig config;
  config.max_slots = 1;
  Bench b(config);
  b.add_nodes(4);
  std::vector<JobId> small;
  for (int i = 0; i < 4; ++i) small.push_back(b.submit(Bench::on_nodes(1)));
  const JobId large = b.submit(Bench::on_nodes(4));
  int ends = 0;
  for (; b.state(large) == JobState::Pending && ends < 20; ++ends) {
    small.push_back(b.submit(Bench::on_nodes(1)));
    for (const JobId job : small) {
      if (b.state(job) != JobState::Running) continue;
      b.finish(job);
      break;
    }
  }
  EXPECT_EQ(b.state(large), JobState::Running);
  EXPECT_LE(ends, 5) << "one round of ends must do";
}

TEST(Placement, HighComesBeforeNormalAndPriorityBeforeAge) {
  ClusterConfig config;
  config.max_slots = 1;
  Bench b(config);
  b.add_nodes(1);
  const JobId running = b.submit(Bench::on_nodes(1));
  const JobId old = b.submit(Bench::on_nodes(1));
  base::ResourceRequest request = Bench::on_nodes(1);
  request.priority = 5;
  const JobId important = b.submit(request);
  request.queue = base::Queue::High;
  request.priority = 0;
  const JobId high = b.submit(request);
  b.finish(running);
  EXPECT_EQ(b.state(high), JobState::Running);
  b.finish(high);
  EXPECT_EQ(b.state(important), JobState::Running);
  b.finish(important);
  EXPECT_EQ(b.state(old), JobState::Running);
}

TEST(Placement, SharesFollowWeights) {
  Bench b;
  b.add_nodes(1);
  base::ResourceRequest heavy = Bench::on_nodes(1);
  heavy.weight = 3;
  const JobId three = b.submit(heavy);
  const JobId one = b.submit(Bench::on_nodes(1));
  b.pass(1s);
  EXPECT_EQ(b.view(three).share, 0.75);
  EXPECT_EQ(b.view(one).share, 0.25);
  b.expect_ok(b.cluster.set_weight(one, 3, b.now));
  b.pass(1s);
  EXPECT_EQ(b.view(one).share, 0.5);
}

TEST(Nodes, RemovedNodeIsGoneUntilItIsAdded) {
  Bench b;
  b.add_nodes(3);
  const NodeId node{1};
  const JobId job = b.submit(Bench::on_nodes(3));
  EXPECT_TRUE(b.cluster.remove_node(node, b.now).error().is(base::Errc::WrongState));
  b.expect_ok(b.cluster.drain(node, "old", b.now));
  EXPECT_TRUE(b.cluster.remove_node(node, b.now).error().is(base::Errc::WrongState));
  b.finish(job);
  b.expect_ok(b.cluster.remove_node(node, b.now));
  EXPECT_EQ(b.cluster.nodes(), (std::vector{NodeId{0}, NodeId{2}}));
  EXPECT_EQ(b.cluster.check(Bench::on_nodes(3)).error().context(),
            "requested 3 nodes; the cluster has 2");
  EXPECT_TRUE(b.cluster.remove_node(node, b.now).error().is(base::Errc::NotFound));
  b.connect(node);  // its daemon may not know it yet
  EXPECT_FALSE(b.cluster.node(node));
  EXPECT_EQ(b.view(b.submit(Bench::on_nodes(2))).nodes, (std::vector{NodeId{0}, NodeId{2}}));
  EXPECT_TRUE(b.cluster.add_node(node, "node01"));
  EXPECT_FALSE(b.cluster.add_node(node, "node01"));
  b.connect(node);
  EXPECT_EQ(b.state(b.submit(Bench::on_nodes(3))), JobState::Running);
}

// ---- a restarted head -------------------------------------------------------------------------

struct Restarted {
  Bench before, after;
  JobId job{0};

  explicit Restarted(bool launching = false) {
    before.add_nodes(2);
    if (launching) before.deaf = {NodeId{1}};
    job = before.submit(Bench::on_nodes(2));
    after.now = before.now + 2s;
    after.infos = before.infos;
    after.last_job = before.last_job;
    after.cluster.set_incarnation(Epoch{1});
    for (const auto& [id, info] : after.infos) {
      EXPECT_TRUE(after.cluster.add_node(id, info.name));
    }
    after.take(after.cluster.recover({stored_job(before.view(job))}, after.now));
  }

  base::AttemptReport report(base::AttemptPhase phase, std::vector<base::TaskExit> exits = {}) {
    return {before.view(job).attempt, phase, std::move(exits), {}};
  }
};

// ---- jobs that take more nodes where there is room

base::ResourceRequest from_to(std::uint32_t least, std::uint32_t most) {
  auto request = Bench::on_nodes(least);
  request.most_nodes = most;
  return request;
}

TEST(Placement, RangeTakesAllFreeNodesOfARow) {
  Bench b;
  b.add_nodes(5);
  b.submit(Bench::on_nodes(2));
  const JobId job = b.submit(from_to(2, 4));
  EXPECT_EQ(nodes_of(b, job), (std::vector<std::uint32_t>{2, 3, 4}));
  EXPECT_EQ(b.view(job).slot, base::SlotIndex{0}) << "more would cost the first its slices";
  const JobId alone = b.submit(from_to(2, 4));
  EXPECT_EQ(nodes_of(b, alone).size(), 4U) << "it needs a row of its own anyway";
  EXPECT_EQ(b.view(alone).slot, base::SlotIndex{1});
}

TEST(Placement, RangeTakesTheRowWithMostRoom) {
  Bench b;
  b.add_nodes(4);
  b.submit(Bench::on_nodes(3));
  b.submit(Bench::on_nodes(2));
  const JobId job = b.submit(from_to(1, 4));
  EXPECT_EQ(b.view(job).slot, base::SlotIndex{1});
  EXPECT_EQ(nodes_of(b, job).size(), 2U);
}

TEST(Placement, RangeWaitsOnlyForItsMinimum) {
  ClusterConfig config;
  config.max_slots = 1;
  Bench b(config);
  b.add_nodes(4);
  const JobId one = b.submit(Bench::on_nodes(1));
  const JobId other = b.submit(Bench::on_nodes(2));
  const JobId job = b.submit(from_to(2, 4));
  EXPECT_EQ(b.state(job), JobState::Pending);
  const JobId late = b.submit(Bench::on_nodes(1));
  EXPECT_EQ(b.state(late), JobState::Pending) << "promised";
  b.finish(one);
  EXPECT_EQ(nodes_of(b, job).size(), 2U);
  b.finish(other);
  EXPECT_EQ(b.state(late), JobState::Running);
}

TEST(Placement, RangeIsChosenAgainForEachAttempt) {
  Bench b;
  b.add_nodes(4);
  auto request = from_to(2, 4);
  request.requeue = base::Requeue::Yes;
  const JobId job = b.submit(request);
  ASSERT_EQ(nodes_of(b, job).size(), 4U);
  b.silent.insert(NodeId{3});
  b.pass(4s);
  EXPECT_EQ(b.state(job), JobState::Running);
  EXPECT_EQ(nodes_of(b, job), (std::vector<std::uint32_t>{0, 1, 2}));
}

// ---- priorities that change

TEST(Placement, ChangedPriorityCountsAtOnce) {
  ClusterConfig config;
  config.max_slots = 1;
  Bench b(config);
  b.add_nodes(2);
  const JobId first = b.submit(Bench::on_nodes(1));
  const JobId second = b.submit(Bench::on_nodes(1));
  const JobId wide = b.submit(Bench::on_nodes(2));
  const JobId narrow = b.submit(Bench::on_nodes(1));
  b.finish(first);
  EXPECT_EQ(b.state(narrow), JobState::Pending) << "room is kept for the wide one";
  b.expect_ok(b.cluster.set_priority(narrow, 1, b.now));
  EXPECT_EQ(b.state(narrow), JobState::Running);
  EXPECT_EQ(b.state(wide), JobState::Pending);
  EXPECT_EQ(b.view(narrow).request.priority, 1);
  b.finish(second);
  EXPECT_FALSE(b.cluster.set_priority(second, 1, b.now)) << "it has ended";
}

// ---- nodes that are added while jobs wait (a reload)

TEST(Placement, JobThatExcludesNodesCanUseNewOnes) {
  Bench b;
  b.add_nodes(3);
  b.expect_ok(b.cluster.drain(NodeId{2}, "by hand", b.now));
  auto request = Bench::on_nodes(2);
  request.except_nodes = {"node00"};
  const JobId job = b.submit(request);
  ASSERT_EQ(b.state(job), JobState::Pending);
  b.add_nodes(1);
  b.pass(100ms);
  ASSERT_EQ(b.state(job), JobState::Running);
  EXPECT_EQ(b.view(job).nodes, (std::vector{NodeId{1}, NodeId{3}}));
}

TEST(Placement, AddedNodesAreNotPromisedToWaitingJobs) {
  ClusterConfig config;
  config.max_slots = 1;
  Bench b(config);
  b.add_nodes(64);
  const JobId runs = b.submit(Bench::on_nodes(1));
  const JobId wide = b.submit(Bench::on_nodes(64));
  ASSERT_EQ(b.state(wide), JobState::Pending);
  EXPECT_EQ(b.state(b.submit(Bench::on_nodes(1))), JobState::Pending) << "all are promised";
  b.add_nodes(130);
  const JobId late = b.submit(Bench::on_nodes(100));
  b.pass(100ms);
  EXPECT_EQ(b.state(late), JobState::Running);
  b.finish(runs);
  b.pass(100ms);
  EXPECT_EQ(b.state(wide), JobState::Running);
}

TEST(Placement, NodeCannotRaiseEpochNumbers) {
  for (const Epoch claimed : {Epoch{UINT64_MAX}, Epoch{(std::uint64_t{1} << 63U) - 1}}) {
    Bench b;
    b.add_nodes(2);
    const NodeId odd{1};
    b.take(b.cluster.node_disconnected(odd, b.now));
    b.connect(odd, {}, claimed);
    const JobId job = b.submit(Bench::on_nodes(1));
    b.pass(100ms);
    EXPECT_EQ(b.state(job), JobState::Running);
    EXPECT_LT(b.cluster.matrix().epoch, Epoch{100});
  }
}

// ---- a restarted head with a different configuration

RecoveredJob asked_for(std::vector<std::string> only, std::vector<std::string> except) {
  RecoveredJob r;
  r.id = JobId{7};
  r.request = Bench::on_nodes(1);
  r.request.only_nodes = std::move(only);
  r.request.except_nodes = std::move(except);
  return r;
}

TEST(Recovery, WaitingJobEndsWithItsRemovedNode) {
  for (const bool excepts : {false, true}) {
    Bench b;
    b.add_nodes(2);
    const std::vector<std::string> gone = {"node77"};
    const auto none = std::vector<std::string>();
    const RecoveredJob job = asked_for(excepts ? none : gone, excepts ? gone : none);
    b.take(b.cluster.recover({job}, b.now));
    EXPECT_EQ(b.state(job.id), JobState::LaunchFailed);
    EXPECT_EQ(b.view(job.id).reasons.at(0), "no node node77");
  }
}

TEST(Recovery, RunningJobKeepsRunningWithoutRemovedNode) {
  Bench b;
  b.add_nodes(2);
  RecoveredJob job = asked_for({"node00", "node77"}, {});
  job.request.requeue = base::Requeue::Yes;
  job.state = JobState::Running;
  job.attempt = base::make_attempt(job.id, 1);
  job.nodes = {NodeId{0}};
  job.cores = {{0}};
  job.tasks_on_node = {1};
  b.take(b.cluster.recover({job}, b.now));
  b.connect(NodeId{0}, {{job.attempt, base::AttemptPhase::Running, {}, {}}});
  b.pass(100ms);
  EXPECT_EQ(b.state(job.id), JobState::Running);
  b.silent.insert(NodeId{0});
  b.pass(4s);
  EXPECT_EQ(b.state(job.id), JobState::NodeFailed) << "it could not be placed again";
}

TEST(Recovery, JobsContinueOnTheirOldCores) {
  Restarted r;
  const JobId waits = r.after.submit({});
  EXPECT_EQ(r.after.view(waits).reasons.at(0), "the head restarted and waits for node[00-01]");
  r.after.connect(NodeId{0}, {r.report(base::AttemptPhase::Running)}, Epoch{41});
  EXPECT_TRUE(r.after.timetables.empty()) << "gangs stay in step by the old ones";
  r.after.connect(NodeId{1}, {r.report(base::AttemptPhase::Running)}, Epoch{40});
  r.after.pass(1s);
  EXPECT_EQ(r.after.state(r.job), JobState::Running);
  EXPECT_EQ(r.after.view(r.job).cores, r.before.view(r.job).cores);
  EXPECT_GT(r.after.timetables.at(NodeId{0}).epoch, Epoch{41});
  EXPECT_EQ(r.after.state(waits), JobState::Running);
}

TEST(Recovery, NodesThatReconnectTooLateAreLost) {
  Restarted r;
  r.after.connect(NodeId{0}, {r.report(base::AttemptPhase::Running)}, Epoch{1});
  r.after.pass(11s);
  EXPECT_EQ(r.after.state(r.job), JobState::NodeFailed);
  EXPECT_EQ(r.after.view(r.job).reasons.at(0), "node01 lost: did not rejoin within 10.0s");
}

TEST(Recovery, ExitsInAReportCount) {
  Restarted r;
  r.after.connect(NodeId{0}, {r.report(base::AttemptPhase::Exited, {{base::Rank{0}, 0, 0}})});
  r.after.connect(NodeId{1}, {r.report(base::AttemptPhase::Exited, {{base::Rank{1}, 4, 0}})});
  EXPECT_EQ(r.after.state(r.job), JobState::Failed);
  EXPECT_EQ(r.after.view(r.job).exit_code, 4);
}

// If a head is killed before the whole job has ended, it does not know which part had ended.
TEST(Recovery, EndedPartIsKeptUntilJobHasEnded) {
  Restarted r;
  const auto end = r.report(base::AttemptPhase::Exited, {{base::Rank{1}, 0, 0}});
  r.after.connect(NodeId{0}, {r.report(base::AttemptPhase::Running)});
  r.after.connect(NodeId{1}, {end});
  r.after.connect(NodeId{1}, {end});  // its daemon was restarted
  r.after.say(NodeId{1}, base::Exited{end.attempt, end.exits, {}});
  EXPECT_TRUE(r.after.sent<base::ForgetTasks>().empty());
  r.after.say(NodeId{0}, base::Exited{end.attempt, {{base::Rank{0}, 0, 0}}, {}});
  EXPECT_EQ(r.after.state(r.job), JobState::Completed);
  EXPECT_EQ(r.after.sent<base::ForgetTasks>().size(), 2U);
}

TEST(Recovery, PreparedNodeOfRunningJobGetsStartTasks) {
  Restarted r;
  r.after.connect(NodeId{0}, {r.report(base::AttemptPhase::Prepared)});
  EXPECT_EQ(r.after.sent<base::StartTasks>().size(), 1U);
}

TEST(Recovery, NodeThatLostTheJobEndsIt) {
  Restarted r;
  r.after.connect(NodeId{0}, {r.report(base::AttemptPhase::Running)});
  r.after.connect(NodeId{1});
  EXPECT_EQ(r.after.state(r.job), JobState::NodeFailed);
  EXPECT_EQ(r.after.view(r.job).reasons.at(0), "node01 came back without the job");
}

TEST(Recovery, JobInLaunchIsKilledAndRetried) {
  Restarted r(true);
  ASSERT_EQ(r.before.state(r.job), JobState::Launching);
  EXPECT_EQ(r.after.state(r.job), JobState::Pending);
  r.after.unkillable = {NodeId{0}};
  r.after.connect(NodeId{0}, {r.report(base::AttemptPhase::Prepared)});
  r.after.connect(NodeId{1});
  EXPECT_EQ(r.after.state(r.job), JobState::Pending) << "the old attempt is still there";
  r.after.say(NodeId{0}, base::Exited{r.before.view(r.job).attempt, {}, {}});
  EXPECT_EQ(r.after.state(r.job), JobState::Running);
  EXPECT_GT(r.after.view(r.job).attempt, r.before.view(r.job).attempt);
}

}  // namespace
}  // namespace score::gang
