#include "scored/node/switch/switch_follower.hpp"

#include "pmlib/network/network.hpp"
#include "tests/support/node/fake_node.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <numeric>
#include <random>
#include <tuple>

namespace score::node {
namespace {

using namespace test;

TEST(SwitchFollower, StopsTheLeavingAndContinuesTheEntering) {
  Node node;
  auto& first = node.add(1);
  auto& second = node.add(2);
  node.follow({turns(TimePoint{1s})});
  EXPECT_EQ(node.step(TimePoint{1s}), TimePoint{1100ms});
  EXPECT_TRUE(first.is_running);
  EXPECT_FALSE(second.is_running);
  EXPECT_EQ(node.step(TimePoint{1100ms}), TimePoint{1200ms});
  EXPECT_FALSE(first.is_running);
  EXPECT_TRUE(second.is_running);
}

TEST(SwitchFollower, AttemptsOutsidePlansAreNotRecorded) {
  Node node;
  node.add(1);
  node.add(2);
  const auto& fresh = node.add(3);
  node.follow({turns(TimePoint{1s})});
  for (const auto at : {1000ms, 1100ms, 1200ms}) node.step(TimePoint{at});
  EXPECT_TRUE(fresh.is_running);
  EXPECT_FALSE(node.entries[2]->has_turn) << "samples must agree with the records";
  EXPECT_TRUE(node.entries[0]->has_turn);
  const auto records = node.trace.read(TimePoint{}).records;
  ASSERT_EQ(records.size(), 3U);
  for (const auto& record : records) {
    EXPECT_EQ(record.entered_count, 1U);
    EXPECT_NE(record.entered[0], AttemptId{3});
  }
}

TEST(SwitchFollower, AChannelRestsBeforeItChangesHands) {
  Node node;
  auto& second = (node.add(1), node.add(2));
  const SharedChannel channel(node);
  node.guard_ns = Duration(300us).count();
  node.step(TimePoint{1s});
  EXPECT_TRUE(channel.users[0]->holds_channel());
  node.step(TimePoint{1100ms});
  EXPECT_TRUE(second.is_running);
  EXPECT_TRUE(channel.users[1]->holds_channel());
  EXPECT_GT(g_now, TimePoint{1100ms + 300us + 300us})
      << "it continues when others have restored too";
  EXPECT_LE(g_now, TimePoint{1100ms + 300us} + ChannelHandover::kMostRestore);
  const auto records = node.trace.read(TimePoint{}).records;
  EXPECT_EQ(records.back().stopped, Duration{0});
  EXPECT_EQ(records.back().guarded, Duration{300us});
  EXPECT_EQ(node.counters.channels.handovers, 2U);
}

TEST(SwitchFollower, JointWaitFollowsTimeOfRestoring) {
  Node node;
  node.add(1);
  node.add(2);
  const SharedChannel channel(node);
  const auto waits = [&](int boundary) {
    node.step(TimePoint{1s} + boundary * 100ms);
    return g_now - (TimePoint{1s} + boundary * 100ms);
  };
  int boundary = 0;
  Duration last = waits(boundary);
  for (const int end = boundary + 60; boundary < end;) last = waits(++boundary);
  EXPECT_LT(last, 100us) << "nothing had to be put back for long";
  g_tick = 30us;
  const Duration slow = waits(++boundary);
  EXPECT_GE(slow, 150us) << "at once";
  g_tick = Duration{0};
  last = waits(++boundary);
  EXPECT_LT(last, slow);
  EXPECT_GT(last, 100us) << "not forgotten at once";
  g_tick = 10ms;
  waits(++boundary);
  g_tick = Duration{0};
  EXPECT_LE(waits(++boundary), ChannelHandover::kMostRestore) << "an outlier is not a measure";
}

TEST(SwitchFollower, AResidentNetworkCostsNoRest) {
  Node node;
  node.add(1);
  node.add(2);
  const SharedChannel channel(node);
  node.program->networks[1] = nullptr;
  node.guard_ns = Duration(300us).count();
  for (int i = 0; i < 10; ++i) node.step(TimePoint{1s} + i * 100ms);
  EXPECT_EQ(g_now, TimePoint{1900ms});
  EXPECT_EQ(node.counters.channels.handovers, 1U);
}

// Both ways of switching must publish the time. The first switch is a long one, and the others are
// turns.
TEST(SwitchFollower, PublishesStoppedTimeInContexts) {
  Node node;
  for (const std::uint64_t id : {1U, 2U}) node.add(id);
  pm::JobNetwork network;
  network.key = 2;
  network.ranks.assign(1, {"node", "-"});
  int error = 0;
  const auto context = pm::create_context(network, 0, true, "", error);
  auto contexts = std::make_shared<ContextSet>();
  contexts->push_back(*duplicate(context->fd()));
  node.follow({turns(TimePoint{1s})});
  node.program->networks[1] = std::make_shared<ChannelUser>(2, contexts, ChannelUser::Sockets{});
  node.follower.take(node.program.get());
  const auto& told = context->segment().header();
  for (const std::uint64_t turn : {1U, 2U, 3U}) {
    node.step(TimePoint{800ms} + turn * 200ms);
    node.step(TimePoint{900ms} + turn * 200ms);
    EXPECT_EQ(told.stopped_us, turn * 100'000U);
    EXPECT_EQ(told.resumes, turn);
  }
}

TEST(SwitchFollower, NetworkOpenedInSliceTakesChannelAtOnce) {
  Node node;
  auto& first = node.add(1);
  node.add(2);
  const SharedChannel channel(node);
  channel.socket->holder = 2;
  node.guard_ns = Duration(300us).count();
  node.step(TimePoint{1010ms});
  EXPECT_TRUE(first.is_running);
  EXPECT_TRUE(channel.users[0]->holds_channel());
  EXPECT_EQ(g_now, TimePoint{1010ms});
}

TEST(SwitchFollower, LetsEverythingRunBeforeTheFirstPlanStarts) {
  Node node;
  auto& second = (node.add(1), node.add(2));
  node.follow({turns(TimePoint{2s})});
  EXPECT_EQ(node.step(TimePoint{1s}), TimePoint{2s});
  EXPECT_TRUE(second.is_running);
}

TEST(SwitchFollower, PlanStaysInForceUntilNextStarts) {
  Node node;
  auto& first = node.add(1);
  auto& second = node.add(2);
  SwitchPlan only_second{Epoch{2}, TimePoint{1150ms}, 100ms, {{0ms, 100ms, ids({2})}}, ids({1, 2})};
  node.follow({turns(TimePoint{1s}), only_second});
  node.step(TimePoint{1s});
  EXPECT_EQ(node.step(TimePoint{1100ms}), TimePoint{1150ms});
  EXPECT_EQ(node.step(TimePoint{1150ms}), std::nullopt);
  EXPECT_FALSE(first.is_running);
  EXPECT_TRUE(second.is_running);
}

TEST(SwitchFollower, StopsNewAttemptThatIsNotDue) {
  Node node;
  node.add(1);
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1s});
  auto& second = node.add(2);
  const auto before = std::move(node.program);
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1030ms});
  EXPECT_FALSE(second.is_running);
}

TEST(SwitchFollower, ContinuesAttemptThatIsNoLongerManaged) {
  Node node;
  auto& second = (node.add(1), node.add(2));
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1s});
  ASSERT_FALSE(second.is_running);
  const auto before = std::move(node.program);
  node.follow({SwitchPlan{Epoch{2}, TimePoint{1s}, 0ms, {}, ids({1, 2})}});
  EXPECT_EQ(node.step(TimePoint{1030ms}), std::nullopt);
  EXPECT_TRUE(second.is_running);
}

TEST(SwitchFollower, NeedsNoWakeUpWithoutSwitches) {
  Node node;
  node.add(1);
  node.follow({SwitchPlan{Epoch{1}, TimePoint{1s}, 100ms, {{0ms, 100ms, ids({1})}}, ids({1})}});
  EXPECT_EQ(node.step(TimePoint{1s}), std::nullopt);
}

TEST(SwitchFollower, SlicesInterruptLoneJobAtEachBoundary) {
  Node node;
  auto& managed = node.add(1);
  auto& other = node.add(2);
  SwitchPlan plan{Epoch{1}, TimePoint{1s}, 100ms, {{0ms, 100ms, ids({1})}}, ids({1})};
  plan.slice = plan.first_slice = 100ms;
  node.follow({plan});
  EXPECT_EQ(node.step(TimePoint{1s}), TimePoint{1100ms});
  EXPECT_EQ(managed.stops, 0);
  for (int i = 1; i <= 5; ++i) {
    EXPECT_EQ(node.step(TimePoint{1s} + i * 100ms + 20us), TimePoint{1s} + (i + 1) * 100ms);
    EXPECT_EQ(managed.stops, i);
    EXPECT_TRUE(managed.is_running);
  }
  EXPECT_EQ(node.counters.switches.load(), 5);
  EXPECT_EQ(other.stops, 0);
}

TEST(SwitchFollower, CountsRunTimeAndSwitchTime) {
  Node node;
  node.add(1);
  node.add(2);
  for (const auto& entry : node.entries) entry->clock.start(TimePoint{1s});
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1s});
  node.step(TimePoint{1100ms} + 40us);
  EXPECT_EQ(node.entries[0]->clock.read(TimePoint{5s}), 100ms + 40us);
  EXPECT_EQ(node.entries[1]->clock.read(TimePoint{1150ms} + 40us), 50ms);
  EXPECT_EQ(overhead_in(node.counters), (SwitchOverhead{.wake = 40us}));
  EXPECT_EQ(node.counters.busy.read(TimePoint{2s}), 1s);
}

// A reader that finds the clock running after it has read the processes has not read a stopped one.
TEST(SwitchFollower, StopsTheClockBeforeTheProcesses) {
  Node node;
  auto& first = node.add(1);
  auto& second = node.add(2);
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1s});
  node.step(TimePoint{1100ms});
  EXPECT_EQ(first.stops, 1);
  EXPECT_FALSE(first.clock_ran_at_stop);
  second.error = EBUSY;
  node.step(TimePoint{1200ms});
  EXPECT_FALSE(second.clock_ran_at_stop);
  EXPECT_EQ(node.entries[1]->clock.read(TimePoint{1250ms}), 150ms) << "it runs on";
}

// The clock estimate has moved the boundary by 30 us just after the switch; no attempt may be
// switched twice.
TEST(SwitchFollower, SettlesAtBoundaryOfSlightlyMovedPlan) {
  Node node;
  auto& first = node.add(1);
  node.add(2);
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1s});
  node.step(TimePoint{1100ms});
  const auto before = std::move(node.program);
  node.follow({turns(TimePoint{1s} + 30us)});
  EXPECT_EQ(node.step(TimePoint{1100ms} + 10us), TimePoint{1100ms} + 30us);
  node.step(TimePoint{1100ms} + 30us);
  EXPECT_FALSE(first.is_running);
  EXPECT_EQ(node.counters.switches, 2U);
}

TEST(SwitchFollower, RecordsEachSwitch) {
  Node node;
  node.add(1);
  node.add(2);
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1s});
  node.step(TimePoint{1106ms});
  const auto trace = node.trace.read(TimePoint{1s});
  ASSERT_EQ(trace.records.size(), 1U);
  const auto& record = trace.records[0];
  EXPECT_EQ(record.due, TimePoint{1100ms});
  EXPECT_EQ(record.woke, Duration{6ms});
  EXPECT_EQ(record.slice, Duration{100ms});
  EXPECT_EQ(record.busy, 1U);
  EXPECT_EQ(record.epoch, Epoch{1});
  EXPECT_EQ(record.left[0], AttemptId{1});
  EXPECT_EQ(record.entered[0], AttemptId{2});
  EXPECT_EQ(record.left_count + record.entered_count, 2U);
  EXPECT_EQ(node.counters.late, 1U);
}

// Otherwise a trace could not tell when the node stopped to be busy.
TEST(SwitchFollower, RecordsThatTheLastJobIsGone) {
  Node node;
  node.add(1);
  node.add(2);
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1s});
  node.step(TimePoint{1100ms});
  const auto before = std::move(node.program);
  node.entries.clear();
  node.follow({{Epoch{2}, TimePoint{1s}, 100ms, {{0ms, 100ms, {}}}, {}}});
  node.step(TimePoint{1130ms});
  const auto records = node.trace.read(TimePoint{}).records;
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[1].busy, 1U);
  EXPECT_EQ(records[2].busy, 0U);
  EXPECT_FALSE(records[2].is_switch());
  EXPECT_EQ(node.counters.switches, 2U);
}

TEST(SwitchFollower, CountsFailedStopsAndRetries) {
  Node node;
  auto& first = node.add(1);
  node.add(2);
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1s});
  first.error = 19;
  node.step(TimePoint{1100ms});
  EXPECT_EQ(node.counters.failed, 1U);
  first.error = 0;
  node.step(TimePoint{1200ms});
  node.step(TimePoint{1300ms});
  EXPECT_FALSE(first.is_running);
}

TEST(SwitchFollower, ReleasesAllAttempts) {
  Node node;
  auto& second = (node.add(1), node.add(2));
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1s});
  node.follower.release();
  EXPECT_TRUE(second.is_running);
}

// ---- Random plans -------------------------------------------------------------------------------

class RandomPlans {
 public:
  explicit RandomPlans(std::uint32_t seed) : random_(seed) {}

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  std::vector<AttemptId> some_of(const std::vector<AttemptId>& all) {
    std::vector<AttemptId> chosen;
    for (const auto id : all) {
      if (below(2) == 0) chosen.push_back(id);
    }
    return chosen;
  }

  SwitchPlan plan(std::uint64_t epoch, TimePoint start) {
    base::Timetable table;
    table.epoch = Epoch{epoch};
    table.managed = some_of(ids({1, 2, 3, 4, 5}));
    if (below(2) == 0) table.fill = some_of(table.managed);
    const std::uint64_t count = below(5);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto length = Duration{1ms} * static_cast<long>(1 + below(50));
      table.segments.push_back({table.cycle, length, some_of(table.managed)});
      table.cycle += length;
    }
    return gang::make_plan(table, start).value();
  }

 private:
  std::mt19937 random_;
};

Role expected_role(const std::vector<SwitchPlan>& plans, AttemptId id, TimePoint at) {
  const SwitchPlan* current = nullptr;
  for (const auto& plan : plans) {
    if (plan.start <= at) current = &plan;
  }
  if (current == nullptr) return Role::Runs;
  const auto* running = gang::running_at(*current, at);
  const auto has = [](const std::vector<AttemptId>& list, AttemptId one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  };
  if (running == nullptr || !has(current->managed, id) || has(*running, id)) return Role::Runs;
  const bool all_may =
      std::ranges::all_of(*running, [&](AttemptId job) { return has(current->fill, job); });
  return all_may && has(current->fill, id) ? Role::Fills : Role::Stopped;
}

// If it is called exactly when it requested, the follower has the plan's set running at any time.
TEST(SwitchFollower, RunningAttemptsMatchThePlan) {
  for (std::uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomPlans random(seed);
    Node node;
    const Duration used{0};
    for (std::uint64_t id = 1; id <= 5; ++id) node.add_sleeper(id, used);
    std::vector<SwitchPlan> plans;
    TimePoint start{900ms};
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
      plans.push_back(random.plan(epoch, start));
      start += Duration{1ms} * static_cast<long>(1 + random.below(200));
    }
    node.follow(plans);
    TimePoint now{1s};
    for (int turn = 0; turn < 100; ++turn) {
      const auto next = node.step(now);
      // This is any time until the next step; without a next step, any time.
      const auto gap = next ? *next - now : Duration{1s};
      ASSERT_GT(gap, Duration::zero());
      const auto within = now + Duration(random.below(static_cast<std::uint64_t>(gap.count())));
      for (std::size_t i = 0; i < node.targets.size(); ++i) {
        ASSERT_EQ(node.targets[i]->role(), expected_role(plans, node.entries[i]->attempt, within))
            << "attempt " << i + 1 << " turn " << turn;
      }
      if (!next) break;
      now = *next;
    }
  }
}

// Uses all of the time, a part of it or none, in stretches of 300 ms.
struct FakeUsage final : CpuUsage {
  explicit FakeUsage(std::uint64_t seed) : seed_(seed) {}

  Duration used() noexcept override {
    Duration sum{0};
    const Duration end = g_now.time_since_epoch();
    for (Duration from{0}; from < end; from += 300ms) {
      const auto halves = (seed_ + static_cast<std::uint64_t>(from / 300ms)) % 3;
      sum += std::min<Duration>(300ms, end - from) * halves / 2;
    }
    return sum;
  }

  Duration waited() noexcept override { return Duration{0}; }

  Duration used_by(pid_t) noexcept override { return Duration{-1}; }

 private:
  std::uint64_t seed_;
};

// Makes a random plan of attempts 1 to `jobs`, at most one of them at a time. If they may fill,
// each has its turn once, because at a boundary at which nothing changes only the general path lets
// others fill.
SwitchPlan random_turns(std::mt19937& random, std::uint64_t jobs, TimePoint start) {
  std::vector<std::uint64_t> all(jobs);
  std::iota(all.begin(), all.end(), 1);
  SwitchPlan plan;
  plan.epoch = Epoch{random() % 100};
  plan.start = start;
  plan.managed = ids(all);
  const bool fills = random() % 2 == 0;
  const std::size_t segments = fills ? jobs + 1 : 1 + random() % 5;
  for (std::size_t i = 0; i < segments; ++i) {
    const Duration length = std::chrono::milliseconds{1 + random() % 50};
    const std::uint64_t who = fills ? i : random() % (jobs + 1);
    plan.segments.push_back({plan.cycle, length, who == 0 ? ids({}) : ids({who})});
    plan.cycle += length;
  }
  if (fills) plan.fill = plan.managed;
  return plan;
}

// Returns the attempts that left and entered, and when. The boundary is left out: it differs if a
// follower is late, or sleeps until boundaries at which nothing changes.
auto what_happened(const SwitchRecord& record) {
  return std::tuple{record.due + record.woke, record.due + record.stopped,
                    record.due + record.done, record.left,
                    record.entered,           record.epoch};
}

// The second node of the test is always busy, so only the first one records that no job runs.
auto switches_of(const Node& node) {
  auto records = node.trace.read(TimePoint{}).records;
  std::erase_if(records, [](const SwitchRecord& record) { return !record.is_switch(); });
  return records;
}

// The fast path must have the same effect as every other switch. The second node has one more
// attempt that no plan knows, so that it never takes the fast path.
TEST(SwitchFollower, FastPathMatchesGeneralPath) {
  std::size_t switches = 0;
  std::size_t fast_plans = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    const std::uint64_t jobs = 1 + random() % 3;
    std::array<Node, 2> nodes;
    for (Node& node : nodes) {
      for (std::uint64_t id = 1; id <= jobs; ++id) node.add(id, std::make_unique<FakeUsage>(id));
    }
    nodes[1].add(99);
    TimePoint now{1s};
    const auto follow_new = [&] {
      std::vector<SwitchPlan> plans{
          random_turns(random, jobs, now - Duration(random() % 100'000'000))};
      if (random() % 2 == 0)
        plans.push_back(random_turns(random, jobs, now + Duration(random() % 200'000'000)));
      for (Node& node : nodes) node.follow(plans);
      fast_plans += nodes[0].program->parts[0].turns.empty() ? 0 : 1;
      EXPECT_TRUE(nodes[1].program->parts[0].turns.empty());
    };
    follow_new();
    for (int i = 0; i < 300; ++i) {
      for (Node& node : nodes) node.next = node.step(now);
      for (std::size_t entry = 0; entry < jobs; ++entry) {
        const SwitchEntry& quick = *nodes[0].entries[entry];
        const SwitchEntry& slow = *nodes[1].entries[entry];
        ASSERT_EQ(nodes[0].targets[entry]->role(), nodes[1].targets[entry]->role()) << seed;
        ASSERT_EQ(quick.has_turn, slow.has_turn) << seed;
        ASSERT_EQ(quick.clock.read(now), slow.clock.read(now)) << seed;
        ASSERT_EQ(quick.watch.is_idle(), slow.watch.is_idle()) << seed;
      }
      ASSERT_EQ(nodes[0].follower.take_activity_change(), nodes[1].follower.take_activity_change());
      if (random() % 30 == 0) {  // a stop or a start that fails, and works again later
        const int error = random() % 2 == 0 ? EIO : 0;
        for (Node& node : nodes) node.targets[0]->error = error;
      }
      if (random() % 50 == 0) follow_new();
      const Duration ahead{random() % 70'000'000};
      const TimePoint next = nodes[1].next.value_or(now) + ahead / 500;
      now = std::max(now, random() % 3 == 0 ? now + ahead : next);
    }
    const auto quick = switches_of(nodes[0]);
    const auto slow = switches_of(nodes[1]);
    ASSERT_TRUE(std::ranges::equal(quick, slow, {}, what_happened, what_happened)) << seed;
    switches += quick.size();
  }
  EXPECT_GT(switches, 10'000U);
  EXPECT_GT(fast_plans, 500U);
}

TEST(SwitchFollower, SleepsThroughBoundariesWithoutLocalChange) {
  Node node;
  node.add(1);
  node.add(2);
  SwitchPlan plan = turns(TimePoint{1s});  // 1, then 1 together with a job of other nodes, then 2
  plan.cycle = 300ms;
  plan.segments = {{0ms, 100ms, ids({1})}, {100ms, 100ms, ids({1, 7})}, {200ms, 100ms, ids({2})}};
  node.follow({plan});
  EXPECT_EQ(node.step(TimePoint{1s}), TimePoint{1200ms});
  EXPECT_EQ(node.step(TimePoint{1200ms}), TimePoint{1300ms});
  EXPECT_EQ(node.step(TimePoint{1300ms}), TimePoint{1500ms});
}

}  // namespace
}  // namespace score::node