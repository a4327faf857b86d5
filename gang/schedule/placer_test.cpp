// Tests the placer by itself. gang/head/placement_test.cpp tests its effects on jobs.
#include "gang/schedule/placer.hpp"

#include "tests/support/gang/schedule_bench.hpp"

namespace score::gang {
namespace {

using Nodes = std::vector<NodeIndex>;

TEST(Placer, FillsARowBeforeItOpensOne) {
  ScheduleBench b(2);
  const Job& first = b.add(ScheduleBench::on_nodes(1));
  const Job& second = b.add(ScheduleBench::on_nodes(1));
  const Job& third = b.add(ScheduleBench::on_nodes(2));
  EXPECT_EQ(first.home, second.home);
  EXPECT_NE(first.cells, second.cells);
  EXPECT_NE(third.home, first.home);
  EXPECT_EQ(b.placer.matrix().row_count(), 2U);
  EXPECT_TRUE(b.placer.check());
}

TEST(Placer, FreedRoomGoesToWaitingJobs) {
  ScheduleBench b(2);
  b.tables.config.max_slots = 1;
  Job& first = b.add(ScheduleBench::on_nodes(2));
  const Job& second = b.add(ScheduleBench::on_nodes(2));
  EXPECT_FALSE(second.placed);
  EXPECT_TRUE(b.placer.is_in_line(second));
  EXPECT_TRUE(b.placer.place_waiting(b.step.now).empty()) << "no room has grown";
  b.placer.unplace(first);
  EXPECT_EQ(b.placer.place_waiting(b.step.now), std::vector{second.id});
  EXPECT_TRUE(second.placed);
  EXPECT_EQ(b.placer.on_node(0).jobs, std::set{second.id});
}

TEST(Placer, KeepsRoomForFirstInQueue) {
  ScheduleBench b(2);
  b.tables.config.max_slots = 1;
  b.add(ScheduleBench::on_nodes(1));
  const Job& wide = b.add(ScheduleBench::on_nodes(2));
  const Job& narrow = b.add(ScheduleBench::on_nodes(1));
  EXPECT_FALSE(narrow.placed);
  EXPECT_EQ(b.placer.behind(narrow), wide.id);
  b.placer.withdraw(wide);
  EXPECT_EQ(b.placer.place_waiting(b.step.now), std::vector{narrow.id});
}

TEST(Placer, ExclusiveJobSharesNoNode) {
  ScheduleBench b(2);
  b.add(ScheduleBench::on_nodes(1));
  const Job& alone = b.add(ScheduleBench::on_nodes(1, base::Queue::Exclusive));
  EXPECT_EQ(alone.cells.nodes, Nodes{1});
  const Job& other = b.add(ScheduleBench::on_nodes(1));
  EXPECT_EQ(other.cells.nodes, Nodes{0});
}

TEST(Placer, NewRowAvoidsNodesOfHighJobs) {
  ScheduleBench b(2);
  const Job& high = b.add(ScheduleBench::on_nodes(1, base::Queue::High));
  const Job& first = b.add(ScheduleBench::on_nodes(1));
  const Job& second = b.add(ScheduleBench::on_nodes(1));
  EXPECT_EQ(high.cells.nodes, Nodes{0});
  EXPECT_EQ(first.cells.nodes, Nodes{1});
  EXPECT_EQ(second.cells.nodes, Nodes{1});
}

TEST(Placer, RestoresJobOnItsOldCores) {
  ScheduleBench b(2, 4);
  Job& job = b.tables.jobs.add(JobId{7}, UserId{1000}, ScheduleBench::on_nodes(2),
                               {.nodes = 2, .tasks = 2});
  job.cells = {{0, 1}, {{3}, {2}}};
  job.tasks_on_node = {1, 1};
  EXPECT_TRUE(b.placer.restore(job));
  EXPECT_TRUE(job.placed);
  EXPECT_FALSE(b.placer.matrix().is_free(0, job.cells));
  Job& larger = b.tables.jobs.add(JobId{8}, UserId{1000}, {}, {});
  larger.cells = {{0}, {{9}}};
  larger.tasks_on_node = {1};
  EXPECT_FALSE(b.placer.restore(larger)) << "the node has four cores";
}

// ---- urgent jobs

struct UrgentTest : testing::TestWithParam<Placement> {
  static ClusterConfig with_slots(std::uint32_t slots, std::uint32_t urgent) {
    ClusterConfig config;
    config.placement = GetParam();
    config.max_slots = slots;
    config.urgent_slots = urgent;
    return config;
  }

  static base::ResourceRequest urgent_on(std::uint32_t nodes) {
    return ScheduleBench::on_nodes(nodes, base::Queue::Urgent);
  }
};

TEST_P(UrgentTest, GetARowBeyondTheSlots) {
  ScheduleBench b(2, 1, with_slots(1, 2));
  const Job& wide = b.add(ScheduleBench::on_nodes(2));
  const Job& waits = b.add(ScheduleBench::on_nodes(1));
  EXPECT_FALSE(waits.placed);
  Job& urgent = b.add(urgent_on(1));
  EXPECT_TRUE(urgent.placed);
  EXPECT_EQ(b.placer.matrix().row_count(), 2U);
  b.placer.capacity_grew();
  EXPECT_TRUE(b.placer.place_waiting(b.step.now).empty()) << "the row is the urgent job's";
  EXPECT_TRUE(b.placer.check());
  b.placer.unplace(urgent);
  EXPECT_TRUE(b.placer.place_waiting(b.step.now).empty());
  EXPECT_EQ(b.placer.matrix().row_count(), 1U);
  EXPECT_TRUE(wide.placed);
  EXPECT_TRUE(b.placer.check());
}

TEST_P(UrgentTest, HaveNoMoreRowsThanConfigured) {
  ScheduleBench b(2, 1, with_slots(1, 1));
  b.add(ScheduleBench::on_nodes(2));
  EXPECT_TRUE(b.add(urgent_on(2)).placed);
  const Job& second = b.add(urgent_on(1));
  EXPECT_FALSE(second.placed);
  EXPECT_EQ(b.placer.matrix().row_count(), 2U);
  EXPECT_TRUE(b.placer.check());
}

TEST_P(UrgentTest, DoNotHaveMoreMemoryThanThereIs) {
  ScheduleBench b(1, 1, with_slots(1, 2));
  auto large = ScheduleBench::on_nodes(1);
  large.memory_per_node = base::Bytes{1 << 29};
  b.add(large);
  large.queue = base::Queue::Urgent;
  EXPECT_TRUE(b.add(large).placed);
  EXPECT_FALSE(b.add(large).placed);
}

TEST_P(UrgentTest, GoBeforeAllOtherWaitingJobs) {
  ScheduleBench b(1, 1, with_slots(1, 0));
  Job& first = b.add(ScheduleBench::on_nodes(1));
  b.add(ScheduleBench::on_nodes(1));
  b.add(ScheduleBench::on_nodes(1, base::Queue::High));
  const Job& urgent = b.add(urgent_on(1));
  b.placer.unplace(first);
  EXPECT_EQ(b.placer.place_waiting(b.step.now), std::vector{urgent.id});
}

// Jobs of the other queues get back the rows that they had.
TEST_P(UrgentTest, LeaveNoJobBeyondTheSlots) {
  ScheduleBench b(2, 1, with_slots(1, 2));
  Job& narrow = b.add(ScheduleBench::on_nodes(1));
  Job& wide = b.add(urgent_on(2));
  b.placer.unplace(narrow);
  b.placer.place_waiting(b.step.now);
  EXPECT_EQ(b.placer.matrix().row_count(), 1U);
  const Job& next = b.add(ScheduleBench::on_nodes(1));
  EXPECT_FALSE(next.placed) << "the urgent job has the only row now";
  b.placer.unplace(wide);
  EXPECT_EQ(b.placer.place_waiting(b.step.now), std::vector{next.id});
  EXPECT_EQ(b.placer.matrix().row_count(), 1U);
}

TEST_P(UrgentTest, StayAboveWhenTheSlotsBecomeFewer) {
  ScheduleBench b(2, 1, with_slots(2, 1));
  b.add(ScheduleBench::on_nodes(2));
  Job& second = b.add(ScheduleBench::on_nodes(1));
  const Job& urgent = b.add(urgent_on(2));
  EXPECT_TRUE(urgent.placed);
  b.tables.config.max_slots = 1;
  b.placer.capacity_grew();
  EXPECT_TRUE(b.placer.place_waiting(b.step.now).empty());
  EXPECT_FALSE(b.add(ScheduleBench::on_nodes(1)).placed) << "a row that is one too many";
  b.placer.unplace(second);
  b.placer.place_waiting(b.step.now);
  EXPECT_EQ(b.placer.matrix().row_count(), 2U);
  EXPECT_TRUE(b.placer.check());
}

INSTANTIATE_TEST_SUITE_P(Policies, UrgentTest, testing::Values(Placement::Matrix, Placement::Dqt));

// ---- long jobs

struct LongBench : ScheduleBench {
  LongBench() : ScheduleBench(4, 1, with_long()) {}

  static ClusterConfig with_long() {
    ClusterConfig config;
    config.long_limit = 10min;
    return config;
  }

  Job& add_job(std::uint32_t nodes, Duration limit) {
    base::ResourceRequest request = on_nodes(nodes);
    request.scheduled_limit = limit;
    Job& job = add(request);
    for (const JobId id : placer.place_waiting(step.now)) launch(tables.jobs.at(id));
    EXPECT_TRUE(placer.check());
    return job;
  }
};

TEST(LongJobs, ShareNoTime) {
  LongBench b;
  const Job& first = b.add_job(3, 1h);
  const Job& second = b.add_job(4, 1h);
  EXPECT_TRUE(first.placed);
  EXPECT_FALSE(second.placed);
  EXPECT_EQ(b.placer.why_waits(second),
            "long jobs (time limit over 10m) run one after the other: their row is full, or kept "
            "for a job ahead");
  EXPECT_FALSE(b.add_job(1, 2h).placed) << "the second would have to wait for it";
  EXPECT_TRUE(b.add_job(1, 1h).placed) << "it ends when the first does";
}

TEST(LongJobs, LetOtherJobsStartAtOnce) {
  LongBench b;
  const Job& first = b.add_job(4, 1h);
  const Job& brief = b.add_job(4, 5min);
  const Job& open = b.add_job(4, 0s);
  EXPECT_TRUE(brief.placed);
  EXPECT_TRUE(open.placed);
  EXPECT_EQ(first.boost, 1U);
  EXPECT_EQ(b.placer.matrix().row_count(), 3U);
  EXPECT_FALSE(b.add_job(4, 1h).placed);
  EXPECT_EQ(first.boost, b.tables.config.long_weight) << "a long job waits";
  EXPECT_EQ(brief.boost, 1U);
}

struct SharedBench : LongBench {
  SharedBench() {
    tables.config.long_shared = 2h;
    tables.config.max_slots = 3;
  }
};

TEST(LongJobs, ShareWhileNoneHasToWait) {
  SharedBench b;
  const Job& first = b.add_job(4, 1h);
  const Job& second = b.add_job(4, 2h);
  EXPECT_TRUE(second.placed);
  EXPECT_NE(first.home, second.home);
  EXPECT_EQ(first.boost, 1U);
  EXPECT_EQ(second.boost, 1U);
}

TEST(LongJobs, ShareOnlyUpToTheLimit) {
  SharedBench b;
  EXPECT_TRUE(b.add_job(4, 1h).placed);
  EXPECT_FALSE(b.add_job(4, 3h).placed);
}

TEST(LongJobs, RunInTurnOnceOneHasWaited) {
  SharedBench b;
  Job& first = b.add_job(4, 1h);
  Job& second = b.add_job(4, 1h);
  b.add_job(4, 5min);
  const Job& third = b.add_job(4, 1h);
  ASSERT_FALSE(third.placed) << "three rows are full";
  EXPECT_EQ(first.boost, b.tables.config.long_weight);
  EXPECT_EQ(second.boost, 1U);
  b.placer.unplace(first);
  b.placer.place_waiting(b.step.now);
  EXPECT_FALSE(third.placed) << "it no longer shares with the second";
  EXPECT_EQ(second.boost, b.tables.config.long_weight) << "its row is the lowest now";
  b.placer.unplace(second);
  b.placer.place_waiting(b.step.now);
  ASSERT_TRUE(third.placed);
}

// Two jobs over long_shared run in order.
struct EarlyBench : LongBench {
  EarlyBench() {
    tables.config.long_shared = 1h;
    tables.config.long_early = 1h;
    tables.config.max_slots = base::limits::kMaxSlots;
  }

  Job& add_job(std::uint32_t nodes, Duration limit, base::Bytes memory = 0_B) {
    base::ResourceRequest request = on_nodes(nodes);
    request.scheduled_limit = limit;
    request.memory_per_node = memory;
    Job& job = add(request);
    for (const JobId id : placer.place_waiting(step.now)) launch(tables.jobs.at(id));
    EXPECT_TRUE(placer.check());
    return job;
  }

  void end(Job& job) {
    placer.unplace(job);
    for (const JobId id : placer.place_waiting(step.now)) launch(tables.jobs.at(id));
    EXPECT_TRUE(placer.check());
  }
};

TEST(EarlyJobs, StartBesideLongerOnesThatWait) {
  EarlyBench b;
  const Job& first = b.add_job(4, 2h);
  EXPECT_FALSE(b.add_job(4, 2h).placed);
  for (int i = 0; i < 9; ++i) {
    const Job& early = b.add_job(4, 1h);
    EXPECT_TRUE(early.placed) << i;
    EXPECT_EQ(early.boost, 1U);
  }
  EXPECT_EQ(first.boost, b.tables.config.long_weight);
}

TEST(EarlyJobs, NeedMemory) {
  EarlyBench b;
  b.add_job(4, 2h);
  b.add_job(4, 2h);
  EXPECT_TRUE(b.add_job(4, 1h, 1023_MiB).placed);
  EXPECT_FALSE(b.add_job(4, 1h, 2_MiB).placed);
  EXPECT_TRUE(b.add_job(4, 1h, 1_MiB).placed) << "it passes the larger one";
}

TEST(EarlyJobs, AreNotThoseOverTheLimit) {
  EarlyBench b;
  b.add_job(4, 2h);
  b.add_job(4, 2h);
  const Job& longer = b.add_job(4, 61min);
  EXPECT_FALSE(longer.placed);
  EXPECT_NE(b.placer.why_waits(longer).find("time limit over 1h"), std::string::npos);
}

TEST(EarlyJobs, EnterTheLowestRowInOrder) {
  EarlyBench b;
  Job& first = b.add_job(2, 2h);
  Job& second = b.add_job(2, 3h);
  const Job& wide = b.add_job(4, 2h);
  ASSERT_FALSE(wide.placed);
  const Job& early = b.add_job(2, 1h);
  ASSERT_TRUE(early.placed);
  b.end(second);
  EXPECT_TRUE(b.placer.turn_of(early).is_in_order);
  EXPECT_FALSE(wide.placed) << "the first has two nodes";
  b.end(first);
  EXPECT_TRUE(wide.placed || early.boost > 1);
}

TEST(EarlyJobs, KnowWhoIsAhead) {
  EarlyBench b;
  const Job& first = b.add_job(4, 2h);
  b.add_job(4, 2h);
  const Job& early = b.add_job(1, 1h);
  EXPECT_EQ(b.placer.turn_of(early).ahead, first.id);
  EXPECT_TRUE(b.placer.turn_of(first).is_in_order);
  EXPECT_FALSE(b.placer.turn_of(first).ahead);
  EXPECT_FALSE(b.placer.turn_of(b.add_job(1, 5min)).is_in_order);
}

TEST(LongJobs, ShareAgainWhenAllHaveEnded) {
  SharedBench b;
  Job& first = b.add_job(4, 1h);
  Job& waited = b.add_job(4, 3h);
  ASSERT_FALSE(waited.placed);
  b.placer.unplace(first);
  for (const JobId id : b.placer.place_waiting(b.step.now)) b.launch(b.tables.jobs.at(id));
  ASSERT_TRUE(waited.placed);
  b.placer.unplace(waited);
  EXPECT_TRUE(b.add_job(4, 1h).placed);
  EXPECT_TRUE(b.add_job(4, 1h).placed);
}

TEST(LongJobs, KeepTheirRowForThemselves) {
  LongBench b;
  Job& first = b.add_job(2, 1h);
  const Job& brief = b.add_job(2, 5min);
  EXPECT_NE(brief.home, first.home);
  b.placer.unplace(first);
  b.placer.place_waiting(b.step.now);
  EXPECT_EQ(b.placer.matrix().row_count(), 1U);
  const Job& next = b.add_job(4, 1h);
  EXPECT_TRUE(next.placed);
  EXPECT_NE(next.home, brief.home);
}

}  // namespace
}  // namespace score::gang
