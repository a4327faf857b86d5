// Jobs that do not fit in memory together take turns in it. Nodes answer after the time that their
// swap takes. The bench checks after every call that the reservations are within the memory and
// what was measured to be out of it.
#include "tests/support/gang/cluster_bench.hpp"

#include <rapidcheck.h>

#include <map>

namespace score::gang {
namespace {

using base::MemoryShare;

struct TurnsBench : Bench {
  // Says since when the nodes of a job write or read its memory.
  struct Paging {
    Residence residence = Residence::InMemory;
    TimePoint since{};
  };

  explicit TurnsBench(std::uint32_t nodes = 2, Duration turn_max = 10min, Duration idle_after = 0s)
      : Bench(config_of(turn_max, idle_after)) {
    for (std::uint32_t i = 0; i < nodes; ++i) {
      const NodeId id{i};
      infos[id] = {fmt::format("node{:02}", i), 1, 8_GiB};
      infos[id].swap = 64_GiB;
      EXPECT_TRUE(cluster.add_node(id, infos[id].name));
      connect(id);
    }
    now += 10ms;
  }

  static ClusterConfig config_of(Duration turn_max, Duration idle_after) {
    ClusterConfig config;
    config.memory_share = MemoryShare::Always;
    config.memory_turn_max = turn_max;
    config.memory_idle_after = idle_after;
    return config;
  }

  static base::ResourceRequest needs(base::Bytes memory, std::uint32_t nodes = 2) {
    auto request = on_nodes(nodes);
    request.memory_per_node = memory;
    return request;
  }

  JobId start(base::Bytes memory, std::uint32_t nodes = 2) { return submit(needs(memory, nodes)); }

  [[nodiscard]] Duration time_for(const JobView& job) const {
    const double seconds = static_cast<double>(job.request.memory_per_node.value()) / rate;
    return Duration{static_cast<std::int64_t>(seconds * 1e9)};
  }

  // Lets the nodes answer what they have done.
  void page() {
    for (const JobId job : cluster.jobs()) {
      const JobView v = view(job);
      const bool is_out = v.residence == Residence::Leaving;
      if (!is_out && v.residence != Residence::Returning) {
        paging.erase(job);
        continue;
      }
      Paging& own = paging[job];
      if (own.residence != v.residence) own = {v.residence, now};
      if (now < own.since + time_for(v)) continue;
      base::ParkReport report{v.attempt, is_out};
      report.stays = is_out ? stays : base::Bytes{0};
      report.moved = v.request.memory_per_node - stays;
      report.took = time_for(v);
      for (const NodeId node : v.nodes) say(node, report);
    }
  }

  // Lets time pass; `look` is called at each step.
  template <class Look>
  void run(Duration time, Duration step, Look&& look) {
    const TimePoint end = now + time;
    while (now < end) {
      pass(step);
      page();
      look();
    }
  }

  void run(Duration time) {
    run(time, 100ms, [] {});
  }

  [[nodiscard]] bool is_there(JobId job) const {
    const JobView v = view(job);
    return v.state == JobState::Running && v.residence == Residence::InMemory;
  }

  double rate = 1e9;  // bytes per second, of each node's swap
  base::Bytes stays = 16_MiB;
  std::map<JobId, Paging> paging;
};

TEST(MemoryTurns, JobsThatDoNotFitTogetherTakeTurns) {
  TurnsBench b;
  const JobId first = b.start(6_GiB);
  b.run(300s);
  const JobId second = b.start(6_GiB);
  EXPECT_EQ(b.view(first).residence, Residence::Leaving) << "its turn was over";
  b.run(10s);
  EXPECT_TRUE(b.is_there(second));
  EXPECT_EQ(b.view(first).residence, Residence::Parked);
  b.run(600s);
  const double together =
      static_cast<double>((b.view(first).scheduled + b.view(second).scheduled - 300s).count()) /
      static_cast<double>(Duration{610s}.count());
  EXPECT_GT(together, 0.88) << "paging takes a tenth";
  EXPECT_LT(together, 0.97) << "turns are not much longer than needed";
  const auto difference = b.view(first).scheduled - 300s - b.view(second).scheduled;
  EXPECT_LT(std::chrono::abs(difference), 200s);
}

TEST(MemoryTurns, MemoryIsReadAheadAsTheOtherLeaves) {
  TurnsBench b;
  const JobId first = b.start(6_GiB);
  b.run(300s);
  const JobId second = b.start(6_GiB);
  b.run(30s);
  ASSERT_EQ(b.view(first).residence, Residence::Parked);
  const AttemptId waits = b.view(first).attempt;
  const AttemptId leaves = b.view(second).attempt;
  std::map<NodeId, base::ParkTasks> ahead;
  const auto take = [&](const Actions& actions) {
    b.take(actions);
    for (const auto& [node, order] : b.sent<base::ParkTasks>()) {
      if (order.attempt == waits) ahead[node] = order;
    }
  };
  for (const TimePoint end = b.now + 300s; b.now < end && ahead.empty(); b.now += 100ms) {
    take(b.cluster.heartbeat(NodeId{0}, b.now));
    take(b.cluster.heartbeat(NodeId{1}, b.now));
    take(b.cluster.tick(b.now));
  }
  ASSERT_EQ(ahead.size(), 2U) << "on each of its nodes";
  for (const auto& [node, order] : ahead) {
    EXPECT_TRUE(order.out) << "it stays out until the memory is free";
    EXPECT_EQ(order.behind, leaves);
    EXPECT_EQ(order.room, 2_GiB - b.stays) << "what neither has";
  }
  EXPECT_EQ(b.view(first).residence, Residence::Parked);
  EXPECT_EQ(b.view(second).residence, Residence::Leaving);
}

TEST(MemoryTurns, NothingChangesWithoutWaitingJobs) {
  TurnsBench b;
  const JobId first = b.start(4_GiB);
  const JobId second = b.start(4_GiB);
  b.run(100s);
  EXPECT_TRUE(b.paging.empty());
  EXPECT_TRUE(b.is_there(first) && b.is_there(second));
}

TEST(MemoryTurns, SmallJobRunsWithEachGroup) {
  TurnsBench b;
  const JobId first = b.start(6_GiB);
  b.run(10s);
  b.start(6_GiB);
  b.run(1s);
  const JobId small = b.start(1_GiB);
  b.run(5s);
  EXPECT_TRUE(b.is_there(small)) << "the memory that is left serves it";
  bool was_away = false;
  b.run(400s, 1s, [&] { was_away |= b.view(small).residence != Residence::InMemory; });
  EXPECT_FALSE(was_away);
  EXPECT_EQ(b.state(first), JobState::Running);
}

TEST(MemoryTurns, WaitingJobSaysWhatItWaitsFor) {
  TurnsBench b;
  const JobId first = b.start(6_GiB);
  b.run(2s);
  const JobId second = b.start(6_GiB);
  b.run(1s);
  const std::string why = fmt::format("{}", fmt::join(b.view(second).reasons, "; "));
  EXPECT_NE(why.find(fmt::format("s, when job {} leave", first)), why.npos) << why;
  b.run(400s);
  const JobId away = b.is_there(first) ? second : first;
  EXPECT_NE(b.view(away).reasons.at(0).find("its turn comes in"), std::string::npos)
      << b.view(away).reasons.at(0);
}

TEST(MemoryTurns, NoTurnIsLongerThanTheBound) {
  TurnsBench b(2, 20s);
  b.rate = 1e8;
  const JobId first = b.start(6_GiB);
  b.run(1s);
  const JobId second = b.start(6_GiB);
  b.run(200s);
  EXPECT_EQ(b.state(second), JobState::Running);
  Duration there{0};
  Duration longest{0};
  b.run(600s, 500ms, [&] {
    there = b.is_there(first) ? there + 500ms : 0s;
    longest = std::max(longest, there);
  });
  EXPECT_GT(longest, 10s);
  EXPECT_LE(longest, 22s);
}

TEST(MemoryTurns, JobThatRefusesDisplacesNone) {
  TurnsBench b;
  const JobId first = b.start(6_GiB);
  b.run(200s);
  auto request = TurnsBench::needs(6_GiB);
  request.no_park = true;
  const JobId refuses = b.submit(request);
  const JobId behind = b.start(6_GiB);
  b.run(100s);
  EXPECT_TRUE(b.is_there(first));
  EXPECT_EQ(b.state(refuses), JobState::Pending);
  EXPECT_EQ(b.state(behind), JobState::Pending) << "or the other one would never start";
  b.finish(first);
  b.run(1s);
  EXPECT_EQ(b.state(refuses), JobState::Running);
}

// The memory that stays may be too much for the job that waits.
TEST(MemoryTurns, JobThatCannotBeServedIsTriedOnce) {
  TurnsBench b;
  b.stays = 3_GiB;
  const JobId first = b.start(6_GiB);
  b.run(300s);
  const JobId second = b.start(6_GiB);
  b.run(30s);
  EXPECT_EQ(b.state(second), JobState::Pending);
  std::size_t times_away = 0;
  b.run(600s, 1s, [&] { times_away += b.is_there(first) ? 0U : 1U; });
  EXPECT_LE(times_away, 2U);
}

TEST(MemoryTurns, JobThatIsIdleForLongLeavesFirst) {
  TurnsBench b(1, 10min, 5s);
  const JobId busy = b.start(4_GiB, 1);
  const JobId idle = b.start(4_GiB, 1);
  b.run(1s);
  base::Activity activity;
  activity.idle = true;
  b.say(NodeId{0}, base::ActivityChanged{b.view(idle).attempt, activity});
  b.run(4s);
  const JobId third = b.start(3_GiB, 1);
  b.run(8s);
  EXPECT_TRUE(b.is_there(busy));
  EXPECT_FALSE(b.is_there(idle));
  EXPECT_NE(b.state(third), JobState::Pending);
}

TEST(MemoryTurns, NextJobReturnsAtOnceAfterAnEnd) {
  TurnsBench b;
  const JobId first = b.start(6_GiB);
  b.run(300s);
  const JobId second = b.start(6_GiB);
  b.run(20s);
  ASSERT_TRUE(b.is_there(second));
  b.finish(second);
  EXPECT_EQ(b.view(first).residence, Residence::Returning);
  b.run(10s);
  EXPECT_TRUE(b.is_there(first));
}

// Each job gets memory again and again, whatever comes later.
TEST(MemoryTurns, NoJobStarves) {
  const bool ok = rc::check([] {
    constexpr std::uint32_t kNodes = 3;
    TurnsBench b(kNodes, 30s);
    b.rate = 1e9 * *rc::gen::inRange(1, 8);
    std::map<JobId, Duration> before;
    std::vector<JobId> jobs;
    const int count = *rc::gen::inRange(2, 7);
    for (int i = 0; i < count; ++i) {
      const auto memory =
          base::Bytes{std::uint64_t{1} << 30U} * *rc::gen::inRange<std::uint64_t>(1, 8);
      jobs.push_back(b.start(memory, *rc::gen::inRange(1U, kNodes + 1)));
      b.run(*rc::gen::inRange(0, 20) * 1s, 500ms, [] {});
    }
    b.run(300s, 1s, [] {});
    for (const JobId job : jobs) before[job] = b.view(job).scheduled;
    // Small jobs come and go meanwhile.
    for (int i = 0; i < 20; ++i) {
      const JobId passing = b.start(2_GiB, 1);
      b.run(30s, 1s, [] {});
      if (b.state(passing) == JobState::Running) b.finish(passing);
    }
    for (const JobId job : jobs) RC_ASSERT(b.view(job).scheduled > before[job] + 1s);
    RC_ASSERT(!testing::Test::HasFailure());
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace score::gang
