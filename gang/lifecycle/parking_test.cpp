// The memory of jobs that are held leaves their nodes, and comes back before they run again.
#include "tests/support/gang/cluster_bench.hpp"

namespace score::gang {
namespace {

using base::MemoryShare;

ClusterConfig sharing(MemoryShare share) {
  ClusterConfig config;
  config.memory_share = share;
  return config;
}

struct ParkingBench : Bench {
  explicit ParkingBench(MemoryShare share = MemoryShare::Urgent, std::uint32_t nodes = 2)
      : Bench(sharing(share)) {
    for (std::uint32_t i = 0; i < nodes; ++i) {
      const NodeId id{i};
      infos[id] = {fmt::format("node{:02}", i), 1, 8_GiB};
      infos[id].swap = 16_GiB;
      EXPECT_TRUE(cluster.add_node(id, infos[id].name));
      connect(id);
    }
    now += 10ms;
  }

  static base::ResourceRequest needs(base::Bytes memory, base::Queue queue = base::Queue::Normal) {
    auto request = on_nodes(2);
    request.memory_per_node = memory;
    request.queue = queue;
    return request;
  }

  JobId start(base::Bytes memory, base::Queue queue = base::Queue::Normal) {
    const JobId job = submit(needs(memory, queue));
    pass(100ms);
    return job;
  }

  void suspend(JobId job) { expect_ok(cluster.suspend(job, now)); }

  void resume(JobId job) { expect_ok(cluster.resume(job, now)); }

  base::ParkReport out(JobId job, base::Bytes stays = 64_MiB) const {
    base::ParkReport report{view(job).attempt, true};
    report.moved = 6_GiB - stays;
    report.stays = stays;
    report.took = 2s;
    return report;
  }

  void all_out(JobId job) {
    for (const NodeId node : view(job).nodes) say(node, out(job));
  }

  void all_back(JobId job) {
    base::ParkReport report{view(job).attempt, false};
    report.moved = 6_GiB - 64_MiB;
    for (const NodeId node : view(job).nodes) say(node, report);
  }

  // Returns the orders of the last call, if they are all alike.
  [[nodiscard]] std::optional<bool> ordered(std::size_t count) const {
    const auto all = sent<base::ParkTasks>();
    if (all.size() != count) return std::nullopt;
    for (const auto& [node, order] : all) {
      if (order.out != all.front().second.out) return std::nullopt;
    }
    return all.front().second.out;
  }

  [[nodiscard]] bool has_run_within(JobId job, Duration time) const {
    for (Duration t{0}; t < time; t += 1ms) {
      if (runs(NodeId{0}, job, now + t)) return true;
    }
    return false;
  }
};

TEST(Parking, NothingIsParkedByDefault) {
  ParkingBench b(MemoryShare::Never);
  const JobId job = b.start(6_GiB);
  b.suspend(job);
  EXPECT_TRUE(b.sent<base::ParkTasks>().empty());
  b.pass(10s);
  EXPECT_EQ(b.view(job).residence, Residence::InMemory);
  const JobId urgent = b.start(6_GiB, base::Queue::Urgent);
  EXPECT_EQ(b.state(urgent), JobState::Pending);
}

TEST(Parking, SuspendedJobLendsItsMemoryToUrgentJobs) {
  ParkingBench b;
  const JobId job = b.start(6_GiB);
  b.suspend(job);
  EXPECT_EQ(b.ordered(2), true);
  EXPECT_EQ(b.view(job).residence, Residence::Leaving);
  const JobId urgent = b.start(6_GiB, base::Queue::Urgent);
  EXPECT_EQ(b.state(urgent), JobState::Pending) << "the memory is not free yet";
  b.all_out(job);
  EXPECT_EQ(b.view(job).residence, Residence::Parked);
  EXPECT_EQ(b.view(job).in_swap, 2 * (6_GiB - 64_MiB));
  EXPECT_NE(b.view(job).reasons.at(0).find("parked"), std::string::npos);
  b.pass(100ms);
  EXPECT_EQ(b.state(urgent), JobState::Running);
  EXPECT_EQ(b.state(b.start(6_GiB)), JobState::Pending) << "it is lent to urgent jobs only";
}

TEST(Parking, SuspendedJobLendsToAllWithAlways) {
  ParkingBench b(MemoryShare::Always);
  const JobId job = b.start(6_GiB);
  b.suspend(job);
  const JobId other = b.start(6_GiB);
  EXPECT_EQ(b.state(other), JobState::Pending);
  b.all_out(job);
  b.pass(100ms);
  EXPECT_EQ(b.state(other), JobState::Running);
  const auto refused = b.cluster.resume(job, b.now);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context(),
            "job 1 is parked, and other jobs have its memory (6G per node): resume it when "
            "they have ended");
  b.finish(other);
  b.resume(job);
  EXPECT_EQ(b.ordered(2), false);
}

TEST(Parking, ResumedJobRunsOnceItsMemoryIsBack) {
  ParkingBench b;
  const JobId job = b.start(6_GiB);
  b.suspend(job);
  b.all_out(job);
  b.resume(job);
  EXPECT_EQ(b.ordered(2), false);
  EXPECT_EQ(b.view(job).residence, Residence::Returning);
  b.pass(1s);
  EXPECT_FALSE(b.has_run_within(job, 1s));
  const JobId urgent = b.start(6_GiB, base::Queue::Urgent);
  EXPECT_EQ(b.state(urgent), JobState::Pending) << "its memory is reserved again";
  b.cancel(urgent);
  b.all_back(job);
  EXPECT_EQ(b.view(job).residence, Residence::InMemory);
  EXPECT_EQ(b.view(job).paged_in, 2 * (6_GiB - 64_MiB));
  b.pass(100ms);
  EXPECT_TRUE(b.has_run_within(job, 1s));
}

TEST(Parking, UrgentJobHasYoungestJobsParked) {
  ParkingBench b;
  const JobId oldest = b.start(2_GiB);
  const JobId middle = b.start(3_GiB);
  const JobId youngest = b.start(3_GiB);
  const JobId urgent = b.submit(ParkingBench::needs(5_GiB, base::Queue::Urgent));
  EXPECT_EQ(b.ordered(4), true);
  EXPECT_EQ(b.view(oldest).residence, Residence::InMemory);
  EXPECT_EQ(b.view(middle).residence, Residence::Leaving);
  EXPECT_EQ(b.view(youngest).residence, Residence::Leaving);
  b.pass(100ms);
  EXPECT_FALSE(b.has_run_within(youngest, 1s));
  b.all_out(middle);
  EXPECT_EQ(b.state(urgent), JobState::Pending);
  b.all_out(youngest);
  b.pass(100ms);
  EXPECT_EQ(b.state(urgent), JobState::Running);
  EXPECT_EQ(b.view(youngest).residence, Residence::Parked);
  b.finish(urgent);
  b.pass(10ms);
  EXPECT_EQ(b.view(middle).residence, Residence::Returning);
  b.all_back(middle);
  b.all_back(youngest);
  b.pass(100ms);
  EXPECT_TRUE(b.has_run_within(middle, 1s));
  EXPECT_TRUE(b.has_run_within(youngest, 1s));
}

TEST(Parking, ParkedJobReturnsIfUrgentJobGivesUp) {
  ParkingBench b;
  const JobId job = b.start(6_GiB);
  const JobId urgent = b.submit(ParkingBench::needs(6_GiB, base::Queue::Urgent));
  b.all_out(job);
  b.cancel(urgent);
  b.pass(10ms);
  EXPECT_EQ(b.view(job).residence, Residence::Returning);
  b.all_back(job);
  b.pass(100ms);
  EXPECT_TRUE(b.has_run_within(job, 1s));
}

// Memory that stays may be too much for the job that waits.
TEST(Parking, JobsReturnIfParkingMakesTooLittleRoom) {
  ParkingBench b;
  const JobId job = b.start(6_GiB);
  const JobId urgent = b.submit(ParkingBench::needs(6_GiB, base::Queue::Urgent));
  for (const NodeId node : b.view(job).nodes) b.say(node, b.out(job, 5_GiB));
  b.pass(10ms);
  EXPECT_EQ(b.state(urgent), JobState::Pending);
  EXPECT_EQ(b.view(job).residence, Residence::Returning);
  b.all_back(job);
  b.pass(1s);
  EXPECT_EQ(b.view(job).residence, Residence::InMemory) << "it is not tried again";
  EXPECT_TRUE(b.has_run_within(job, 1s));
}

TEST(Parking, JobThatCannotBeParkedRunsOn) {
  ParkingBench b;
  const JobId job = b.start(6_GiB);
  b.submit(ParkingBench::needs(6_GiB, base::Queue::Urgent));
  base::ParkReport report{b.view(job).attempt, true};
  report.reason = "4.0 of 4.1 MB of its memory are locked, shared or huge pages";
  for (const NodeId node : b.view(job).nodes) b.say(node, report);
  b.pass(100ms);
  EXPECT_EQ(b.view(job).residence, Residence::InMemory);
  EXPECT_TRUE(b.has_run_within(job, 1s));
  EXPECT_EQ(b.view(job).reasons.at(0), "cannot be parked: node01: " + report.reason);
  b.suspend(job);
  EXPECT_TRUE(b.sent<base::ParkTasks>().empty());
}

TEST(Parking, JobsMayRefuse) {
  ParkingBench b;
  auto request = ParkingBench::needs(6_GiB);
  request.no_park = true;
  const JobId job = b.submit(request);
  b.pass(100ms);
  const JobId urgent = b.submit(ParkingBench::needs(6_GiB, base::Queue::Urgent));
  EXPECT_TRUE(b.sent<base::ParkTasks>().empty());
  EXPECT_EQ(b.state(urgent), JobState::Pending);
  b.suspend(job);
  EXPECT_TRUE(b.sent<base::ParkTasks>().empty());
}

TEST(Parking, AdministratorsMayLeaveQueuesOut) {
  ClusterConfig config = sharing(MemoryShare::Urgent);
  config.unparked_queues = {base::Queue::Normal};
  Bench b(config);
  b.infos[NodeId{0}] = {"node00", 1, 8_GiB};
  b.infos[NodeId{0}].swap = 8_GiB;
  ASSERT_TRUE(b.cluster.add_node(NodeId{0}, "node00"));
  b.connect(NodeId{0});
  const JobId job = b.submit(Bench::on_nodes(1));
  b.pass(100ms);
  b.expect_ok(b.cluster.suspend(job, b.now));
  EXPECT_TRUE(b.sent<base::ParkTasks>().empty());
}

TEST(Parking, NodeWithoutSwapParksNothing) {
  Bench b(sharing(MemoryShare::Always));
  b.add_nodes(1);
  const JobId job = b.submit(Bench::on_nodes(1));
  b.pass(100ms);
  b.expect_ok(b.cluster.suspend(job, b.now));
  EXPECT_TRUE(b.sent<base::ParkTasks>().empty());
}

TEST(Parking, OrdersAreRepeatedAtAConnection) {
  ParkingBench b;
  const JobId job = b.start(6_GiB);
  b.suspend(job);
  b.say(NodeId{1}, b.out(job));
  const base::AttemptReport report{b.view(job).attempt, base::AttemptPhase::Running, {}, {}};
  b.take(b.cluster.node_disconnected(NodeId{0}, b.now, true));
  b.connect(NodeId{0}, {report}, Epoch{1'000'000});
  EXPECT_EQ(b.ordered(1), true);
  b.say(NodeId{0}, b.out(job));
  EXPECT_EQ(b.view(job).residence, Residence::Parked);
  b.say(NodeId{0}, b.out(job));
  EXPECT_EQ(b.view(job).paged_out, 2 * (6_GiB - 64_MiB)) << "a repetition counts once";
}

// A head that has restarted learns from the nodes that a job is parked.
TEST(Parking, RestartedHeadLearnsFromReports) {
  ParkingBench b;
  const JobId job = b.start(6_GiB);
  b.all_out(job);
  EXPECT_EQ(b.view(job).residence, Residence::Returning) << "nothing needs its memory";
  b.all_back(job);
  b.pass(100ms);
  EXPECT_TRUE(b.has_run_within(job, 1s));
}

struct ShortBench : ParkingBench {
  using ParkingBench::ParkingBench;

  void report(bool is_short, base::Bytes spare, std::uint32_t node = 0) {
    say(NodeId{node}, base::MemoryReport{is_short, spare});
  }
};

TEST(Parking, ShortNodeParksItsYoungestJob) {
  ShortBench b;
  const JobId older = b.start(3_GiB);
  const JobId younger = b.start(3_GiB);
  b.report(true, base::Bytes{0});
  EXPECT_EQ(b.view(younger).residence, Residence::Leaving);
  EXPECT_EQ(b.view(older).residence, Residence::InMemory);
  b.report(true, base::Bytes{0});
  EXPECT_TRUE(b.sent<base::ParkTasks>().empty()) << "one leaves at a time";
  b.all_out(younger);
  const std::string why = b.view(younger).reasons.at(0);
  EXPECT_NE(why.find("parked because node00 is short of memory"), why.npos) << why;
  b.report(true, base::Bytes{0});
  b.pass(10s);
  EXPECT_EQ(b.view(older).residence, Residence::InMemory) << "one job stays";
  EXPECT_EQ(b.view(younger).residence, Residence::Parked);
}

TEST(Parking, RelievedNodeTakesItsJobBack) {
  ShortBench b(MemoryShare::Always);
  const JobId older = b.start(1_GiB);
  const JobId younger = b.start(7_GiB);
  b.report(true, base::Bytes{0});
  b.all_out(younger);
  b.report(false, 1_GiB);
  b.pass(10s);
  EXPECT_EQ(b.view(younger).residence, Residence::Parked) << "its memory does not fit";
  b.report(false, 7_GiB);
  b.pass(100ms);
  EXPECT_EQ(b.view(younger).residence, Residence::Returning);
  b.all_back(younger);
  EXPECT_EQ(b.view(younger).residence, Residence::InMemory);
  EXPECT_EQ(b.state(older), JobState::Running);
}

TEST(Parking, LoneJobReturnsToShortNode) {
  ShortBench b;
  const JobId older = b.start(3_GiB);
  const JobId younger = b.start(3_GiB);
  b.report(true, base::Bytes{0});
  b.all_out(younger);
  b.cancel(older);
  b.pass(1s);
  EXPECT_EQ(b.view(younger).residence, Residence::Returning);
}

TEST(Parking, ShortNodeParksNothingByDefault) {
  ShortBench b(MemoryShare::Never);
  b.start(3_GiB);
  b.start(3_GiB);
  b.report(true, base::Bytes{0});
  EXPECT_TRUE(b.sent<base::ParkTasks>().empty());
}

TEST(Parking, UsageHasWhatWasPaged) {
  ParkingBench b;
  const JobId job = b.start(6_GiB);
  b.suspend(job);
  b.all_out(job);
  b.pass(10s);
  b.resume(job);
  b.all_back(job);
  b.pass(1s);
  EXPECT_EQ(b.view(job).usage.paged_out, 2 * (6_GiB - 64_MiB));
  EXPECT_EQ(b.view(job).usage.paged_in, 2 * (6_GiB - 64_MiB));
  const Duration parked = b.view(job).usage.parked;
  EXPECT_GE(parked, 10s);
  EXPECT_LT(parked, 11s);
  b.suspend(job);
  b.all_out(job);
  b.pass(5s);
  b.cancel(job);
  b.pass(10s);
  EXPECT_EQ(b.state(job), JobState::Cancelled);
  EXPECT_GE(b.view(job).usage.parked, parked + 5s);
  EXPECT_LT(b.view(job).usage.parked, parked + 6s) << "the end ends it";
}

TEST(Parking, EndOfParkedJobReturnsItsMemory) {
  ParkingBench b;
  const JobId job = b.start(6_GiB);
  b.suspend(job);
  b.all_out(job);
  b.cancel(job);
  b.pass(10ms);
  EXPECT_EQ(b.state(job), JobState::Cancelled);
  EXPECT_EQ(b.view(job).residence, Residence::InMemory);
  EXPECT_EQ(b.state(b.start(8_GiB)), JobState::Running);
}

}  // namespace
}  // namespace score::gang
