// Tests the decisions of the watch, with a follower and fake attempts.
#include "scored/node/idle/idle_watch.hpp"

#include "scored/node/switch/switch_follower.hpp"

#include <gtest/gtest.h>

namespace score::node {
namespace {

using namespace std::chrono_literals;
using gang::SwitchPlan;

TimePoint g_now{};

TimePoint fake_now() {
  return g_now;
}

void fake_sleep(TimePoint until) {
  g_now = std::max(g_now, until);
}

constexpr pid_t kLeader = 77;

struct FakeTask {
  bool is_running = true;
  bool is_busy = false;
  Duration used{0};
  int reads = 0;
  int waited_reads = 0;
  bool is_unreadable = false;
  bool is_crowded = false;   // it gets a twentieth of a core
  bool is_starved = false;   // it gets nothing
  Duration wanted{1ms};      // per millisecond
  Duration counted_each{0};  // counted by its cgroup: the kernel counts at ticks
  Duration waited{0};
  Duration stopping{0};  // time that it waits, as the kernel counts it, when it is stopped
  Duration to_stop{0};
};

struct FakeTarget final : SwitchTarget {
  explicit FakeTarget(FakeTask& t) : task(t) {}

  int stop() noexcept override {
    task.is_running = false;
    if (task.is_busy) task.to_stop = task.stopping;
    return 0;
  }

  int go() noexcept override {
    task.is_running = true;
    task.to_stop = Duration{0};
    return 0;
  }

  FakeTask& task;
};

struct FakeUsage final : CpuUsage {
  explicit FakeUsage(FakeTask& t) : task(t) {}

  Duration used() noexcept override {
    ++task.reads;
    if (g_now - counted_at >= task.counted_each) {
      counted = task.used;
      counted_at = g_now;
    }
    return task.is_unreadable ? Duration{-1} : counted;
  }

  Duration waited() noexcept override {
    ++task.waited_reads;
    return task.waited;
  }

  Duration used_by(pid_t process) noexcept override {
    return process == kLeader ? task.used : Duration{-1};
  }

  FakeTask& task;
  Duration counted{0};
  TimePoint counted_at{};
};

std::vector<AttemptId> ids(std::vector<std::uint64_t> numbers) {
  std::vector<AttemptId> made;
  for (const auto number : numbers) made.push_back(AttemptId{number});
  return made;
}

SwitchPlan turns(TimePoint start) {
  return {Epoch{1}, start, 200ms, {{0ms, 100ms, ids({1})}, {100ms, 100ms, ids({2})}}, ids({1, 2})};
}

SwitchPlan with_background(TimePoint start) {
  SwitchPlan plan{Epoch{2}, start, 100ms, {{0ms, 100ms, ids({2})}}, ids({2})};
  plan.background = ids({1});
  return plan;
}

// Has attempts 1 and 2; time passes in steps of 1 ms, or to the millisecond that the follower
// requests.
struct Node {
  Node() {
    g_now = TimePoint{1s};
    for (std::uint64_t id = 1; id <= 2; ++id) {
      FakeTask& task = tasks[id - 1];
      entries.push_back(std::make_shared<SwitchEntry>(
          AttemptId{id}, std::make_unique<FakeTarget>(task), std::make_unique<FakeUsage>(task)));
    }
    tasks[1].is_busy = true;
  }

  void follow(std::vector<SwitchPlan> plans) {
    auto next = std::make_unique<SwitchProgram>(std::move(plans), entries);
    follower.take(next.get());
    program = std::move(next);
    due = g_now;
  }

  void pass(Duration time) {
    for (const TimePoint end = g_now + time; g_now < end; g_now += 1ms) {
      for (FakeTask& task : tasks) {
        const Duration stopping = std::min<Duration>(task.to_stop, 1ms);
        task.waited += stopping;
        task.to_stop -= stopping;
        if (!task.is_running || !task.is_busy) continue;
        Duration got = task.is_crowded ? Duration{50us} : Duration{1ms};
        if (task.is_starved) got = Duration{0};
        task.used += std::min(got, task.wanted);
        if (task.wanted > got) task.waited += task.wanted - got;
      }
      if (!due || *due > g_now + 1ms) continue;
      ++steps;
      const TimePoint at = g_now;
      g_now += 1ms;
      due = follower.step();
      g_now = at;
      changes += follower.take_activity_change() ? 1 : 0;
    }
  }

  [[nodiscard]] bool is_idle(std::size_t i) const { return entries[i]->watch.is_idle(); }

  std::array<FakeTask, 2> tasks;
  SwitchTrace trace;
  SwitchCounters counters;
  std::atomic<Duration::rep> guard_ns{0};
  SwitchFollower follower{{&fake_now, &fake_sleep, guard_ns}, trace, counters};
  std::vector<std::shared_ptr<SwitchEntry>> entries;
  std::unique_ptr<SwitchProgram> program;
  std::optional<TimePoint> due;
  int steps = 0;
  int changes = 0;
};

TEST(IdleWatch, IdleAfterTwoUnusedSlices) {
  Node node;
  node.follow({turns(TimePoint{1s})});
  node.pass(100ms);
  EXPECT_FALSE(node.is_idle(0));
  node.pass(500ms);
  EXPECT_TRUE(node.is_idle(0));
  EXPECT_FALSE(node.is_idle(1));
  EXPECT_EQ(node.changes, 1);
}

TEST(IdleWatch, BusyAttemptsNeedOneExtraWakeUp) {
  Node node;
  node.tasks[0].is_busy = true;
  node.follow({turns(TimePoint{1s})});
  node.pass(2s);
  EXPECT_LE(node.steps, 41);
  EXPECT_EQ(node.changes, 0);
}

TEST(IdleWatch, IdlenessInsideSliceIsSeenBeforeItsEnd) {
  Node node;
  node.follow({turns(TimePoint{1s})});
  node.tasks[0].is_busy = true;
  node.pass(405ms);  // 5 ms into its slice
  node.tasks[0].is_busy = false;
  node.pass(200ms);  // it used little of that slice
  node.tasks[0].is_busy = true;
  node.pass(10ms);
  node.tasks[0].is_busy = false;
  node.pass(45ms);
  EXPECT_TRUE(node.is_idle(0));
  EXPECT_TRUE(node.tasks[0].is_running) << "its slice is not over";
}

void make_busy(Node& node, bool is_crowded) {
  for (std::size_t i = 0; i < 2; ++i) {
    node.tasks[i].is_busy = true;
    node.tasks[i].is_crowded = is_crowded;
    node.entries[i]->watch.set_leader(kLeader);
  }
  node.follow({turns(TimePoint{1s})});
}

TEST(IdleWatch, BusyAttemptsAreCheckedEveryEighthSlice) {
  for (const bool is_crowded : {false, true}) {
    Node node;
    make_busy(node, is_crowded);
    node.pass(1s);
    const int before = node.tasks[0].reads;
    const int waited_before = node.tasks[0].waited_reads;
    node.pass(18s);  // 90 slices; an attempt that is not crowded is read twice in each
    EXPECT_GE(node.tasks[0].reads - before, is_crowded ? 10 : 20);
    EXPECT_LE(node.tasks[0].reads - before, is_crowded ? 12 : 24);
    EXPECT_LE(node.tasks[0].waited_reads - waited_before, is_crowded ? 12 : 0);
    EXPECT_EQ(node.changes, 0);
  }
}

TEST(IdleWatch, IdlenessIsSeenWithinTwoOfItsSlices) {
  for (int turn = 0; turn < 12; ++turn) {
    for (const Duration at : {0ms, 5ms, 50ms, 85ms}) {
      Node node;
      make_busy(node, false);
      node.pass(5s + turn * 200ms + at);  // in its slice
      node.tasks[0].is_busy = false;
      node.pass(100ms - at + 100ms + 60ms);  // the rest, the other's slice, part of the next
      EXPECT_TRUE(node.is_idle(0)) << turn << " " << at.count();
    }
  }
}

TEST(IdleWatch, CrowdedNodeNeedsOneMoreSlice) {
  for (int turn = 0; turn < 12; ++turn) {
    Node node;
    make_busy(node, true);
    node.pass(5s + turn * 200ms);
    node.tasks[0].is_busy = false;
    node.pass(200ms + 60ms);
    EXPECT_TRUE(node.is_idle(0)) << turn;
  }
}

// If 64 ranks share two cores, each computes a little, waits for a core for a while, and waits for
// the other ranks for most of the time.
TEST(IdleWatch, CommunicatingAttemptNeedsNoWakeUp) {
  Node node;
  make_busy(node, true);
  for (FakeTask& task : node.tasks) task.wanted = 200us;
  node.pass(1s);
  const int steps = node.steps;
  const int reads = node.tasks[0].reads;
  node.pass(18s);  // 180 switches
  EXPECT_LE(node.steps - steps, 181);
  EXPECT_LE(node.tasks[0].reads - reads, 12);
  EXPECT_EQ(node.changes, 0);
  node.tasks[0].is_busy = false;
  node.pass(500ms);
  EXPECT_TRUE(node.is_idle(0));
}

TEST(IdleWatch, IdleOrEndedLeaderDoesNotHideTasks) {
  Node node;
  make_busy(node, false);
  node.entries[0]->watch.set_leader(kLeader + 1);
  node.pass(5s);
  EXPECT_FALSE(node.is_idle(0));
  node.tasks[0].is_busy = false;
  node.pass(600ms);
  EXPECT_TRUE(node.is_idle(0));
}

SwitchPlan short_turns(TimePoint start, Duration slice) {
  return {
      Epoch{1}, start, 2 * slice, {{0ms, slice, ids({1})}, {slice, slice, ids({2})}}, ids({1, 2})};
}

TEST(IdleWatch, ShortSlicesOfCrowdedNodeAreCheckedTogether) {
  Node node;
  make_busy(node, true);
  node.follow({short_turns(TimePoint{1s}, 10ms)});
  node.pass(1s);
  const int steps = node.steps;
  const int before = node.tasks[0].reads;
  node.pass(16s);  // 800 slices each
  EXPECT_LE(node.tasks[0].reads - before, 26);
  EXPECT_GE(node.tasks[0].reads - before, 22);
  EXPECT_LE(node.steps - steps, 1601);
  node.tasks[0].is_busy = false;
  node.pass(400ms);
  EXPECT_TRUE(node.is_idle(0));
}

// The slice has 8 ms in steps of 1 ms, because an eighth is a millisecond.
TEST(IdleWatch, IdlenessInShortSliceIsSeenInNext) {
  for (int turn = 0; turn < 12; ++turn) {
    for (const Duration at : {0ms, 3ms, 8ms, 12ms, 15ms}) {
      Node node;
      make_busy(node, false);
      node.follow({short_turns(TimePoint{1s}, 16ms)});
      node.pass(5s + turn * 32ms - 5s % 32ms + at);  // in its slice
      node.tasks[0].is_busy = false;
      node.pass(16ms - at + 16ms + 13ms);
      EXPECT_TRUE(node.is_idle(0)) << turn << " " << at.count();
    }
  }
}

// The successor had the processor while the task was to stop, and the kernel counts that as waiting
// time.
TEST(IdleWatch, TimeOfStoppingDoesNotHideRest) {
  for (int turn = 0; turn < 12; ++turn) {
    for (const Duration at : {0ms, 3ms, 8ms, 12ms, 15ms}) {
      Node node;
      make_busy(node, false);
      node.tasks[0].stopping = 9ms;
      node.follow({short_turns(TimePoint{1s}, 16ms)});
      node.pass(5s + turn * 32ms - 5s % 32ms + at);  // in its slice
      node.tasks[0].is_busy = false;
      node.pass(16ms - at + 16ms + 14ms);
      EXPECT_TRUE(node.is_idle(0)) << turn << " " << at.count();
    }
  }
}

// The attempt gets no time for two slices, and was not crowded before.
TEST(IdleWatch, StarvedAttemptIsNotIdle) {
  for (const Duration at : {0ms, 8ms, 15ms}) {
    Node node;
    make_busy(node, false);
    node.tasks[0].stopping = 9ms;
    node.follow({short_turns(TimePoint{1s}, 16ms)});
    node.pass(5s - 5s % 32ms + at);
    node.tasks[0].is_starved = true;
    node.pass(2s);
    EXPECT_FALSE(node.is_idle(0)) << at.count();
    EXPECT_EQ(node.changes, 0);
  }
}

TEST(IdleWatch, TimeCountedLateDoesNotMakeIdle) {
  Node node;
  make_busy(node, false);
  node.tasks[0].counted_each = 4ms;
  node.follow({short_turns(TimePoint{1s}, 16ms)});
  for (int turn = 0; turn < 50; ++turn) {
    node.tasks[0].is_busy = false;
    node.pass(2ms);
    node.tasks[0].is_busy = true;
    node.pass(53ms);
  }
  EXPECT_EQ(node.changes, 0);
}

TEST(IdleWatch, BusyAttemptsAreReadTwicePerShortSlice) {
  Node node;
  make_busy(node, false);
  node.follow({short_turns(TimePoint{1s}, 10ms)});
  node.pass(1s);
  const int steps = node.steps;
  node.pass(2s);  // 200 slices
  EXPECT_LE(node.steps - steps, 401);
  EXPECT_EQ(node.changes, 0);
}

// The attempt waits for others now and then, and a check on suspicion always finds it at work.
TEST(IdleWatch, FrequentFalseSuspicionsBecomeRare) {
  Node node;
  make_busy(node, false);
  node.tasks[0].wanted = 600us;
  node.pass(5s);
  const int steps = node.steps;
  node.pass(4s);  // 40 slices, of which 20 are its own
  EXPECT_LE(node.steps - steps, 84);
  node.tasks[0].is_busy = false;
  node.pass(300ms);
  EXPECT_TRUE(node.is_idle(0));
}

// The attempt had to share the processor in the background, but has it alone in its slices.
TEST(IdleWatch, CrowdedInBackgroundIsNotCrowdedInSlices) {
  Node node;
  node.entries[0]->watch.set_leader(kLeader);
  node.follow({turns(TimePoint{1s})});
  node.pass(600ms);
  node.follow({with_background(g_now)});
  node.pass(1s);
  node.tasks[0].is_busy = node.tasks[0].is_crowded = true;
  node.pass(60ms);
  ASSERT_FALSE(node.tasks[0].is_running);
  node.tasks[0].is_crowded = false;
  node.follow({turns(g_now)});
  node.pass(200ms + 50ms);
  node.tasks[0].is_busy = false;  // in the middle of its second slice
  node.pass(50ms + 100ms + 30ms);
  EXPECT_TRUE(node.is_idle(0));
}

TEST(IdleWatch, CrowdedAttemptIsStillCheckedInEachSlice) {
  Node node;
  make_busy(node, false);
  node.follow({short_turns(TimePoint{1s}, 16ms)});
  node.pass(31 * 32ms);
  node.tasks[0].is_crowded = true;
  node.pass(32ms);
  node.tasks[0].is_busy = false;
  node.pass(4 * 32ms);
  EXPECT_TRUE(node.is_idle(0));
}

// The other attempts have ended.
TEST(IdleWatch, AttemptWithAllTimeIsNotCrowded) {
  Node node;
  make_busy(node, true);
  node.pass(2s);
  node.tasks[0].is_crowded = false;
  node.pass(800ms);  // not yet eight slices
  node.tasks[0].is_busy = false;
  node.pass(100ms + 100ms + 30ms);
  EXPECT_TRUE(node.is_idle(0));
}

// The attempt is next to a gang. The gang has always waited a little before.
TEST(IdleWatch, EarlierWaitingIsNotCounted) {
  Node node;
  make_busy(node, false);
  node.pass(5s);
  node.tasks[0].waited += 2s;
  node.pass(55s);
  node.tasks[0].is_busy = false;
  node.pass(100ms + 100ms + 60ms);
  EXPECT_TRUE(node.is_idle(0));
}

TEST(IdleWatch, BackgroundAttemptRunsTogetherWithOthers) {
  Node node;
  node.follow({turns(TimePoint{1s})});
  node.pass(600ms);
  node.follow({with_background(g_now)});
  node.pass(1s);
  EXPECT_TRUE(node.tasks[0].is_running);
  EXPECT_TRUE(node.tasks[1].is_running);
  EXPECT_TRUE(node.is_idle(0));
}

TEST(IdleWatch, WakingBackgroundAttemptIsStoppedAtNextCheck) {
  Node node;
  node.follow({turns(TimePoint{1s})});
  node.pass(600ms);
  node.follow({with_background(g_now)});
  node.pass(1s);
  node.changes = 0;
  const Duration before = node.tasks[0].used;
  node.tasks[0].is_busy = true;
  node.pass(60ms);
  EXPECT_FALSE(node.tasks[0].is_running);
  EXPECT_FALSE(node.is_idle(0));
  EXPECT_EQ(node.changes, 1);
  EXPECT_LE(node.tasks[0].used - before, 51ms) << "what it took from the gang";
  node.follow({turns(g_now)});
  node.pass(50ms);
  EXPECT_TRUE(node.tasks[0].is_running) << "the timetable has it again";
}

// The kernel has not yet counted the attempt's use, but the clock of its first task has.
TEST(IdleWatch, WakingIsSeenBeforeKernelTick) {
  Node node;
  node.entries[0]->watch.set_leader(kLeader);
  node.follow({turns(TimePoint{1s})});
  node.pass(600ms);
  SwitchPlan plan = with_background(g_now);
  plan.cycle = plan.segments[0].length = 10ms;
  node.follow({plan});
  node.pass(100ms);
  node.tasks[0].counted_each = 1s;
  node.tasks[0].is_busy = true;
  node.pass(7ms);
  EXPECT_FALSE(node.tasks[0].is_running);
}

// Each boundary of the gangs would restart the attempt's time.
TEST(IdleWatch, WakingBetweenShortTurnsIsStopped) {
  Node node;
  node.entries.push_back(std::make_shared<SwitchEntry>(
      AttemptId{3}, std::make_unique<FakeTarget>(node.tasks[1]), nullptr));
  node.follow({turns(TimePoint{1s})});
  node.pass(600ms);
  SwitchPlan plan{Epoch{2}, g_now, 8ms, {{0ms, 4ms, ids({2})}, {4ms, 4ms, ids({3})}}, ids({2, 3})};
  plan.background = ids({1});
  node.follow({plan});
  node.pass(500ms);
  node.tasks[0].is_busy = true;
  node.pass(12ms);
  EXPECT_FALSE(node.tasks[0].is_running);
}

TEST(IdleWatch, BackgroundAttemptsAreCheckedTogether) {
  Node node;
  node.tasks[1].is_busy = false;
  node.follow({turns(TimePoint{1s})});
  node.pass(1s);
  ASSERT_TRUE(node.is_idle(0) && node.is_idle(1));
  SwitchPlan plan = with_background(g_now);
  plan.segments[0].jobs = plan.managed = ids({3});
  node.follow({plan});
  node.pass(33ms);
  plan.background = ids({1, 2});
  node.follow({plan});
  node.pass(200ms);
  const int steps = node.steps;
  const int reads = node.tasks[0].reads + node.tasks[1].reads;
  node.pass(1s);
  EXPECT_LE(node.steps - steps, 21);
  EXPECT_GE(node.tasks[0].reads + node.tasks[1].reads - reads, 38);
}

TEST(IdleWatch, HeldAttemptRunsOneTenthWithoutHead) {
  Node node;
  node.follow({turns(TimePoint{1s})});
  node.pass(600ms);
  node.follow({with_background(g_now)});
  node.tasks[0].is_busy = true;
  node.pass(100ms);
  const Duration before = node.tasks[0].used;
  node.pass(11s);
  EXPECT_GE(node.tasks[0].used - before, 900ms);
  EXPECT_LE(node.tasks[0].used - before, 1100ms);
}

TEST(IdleWatch, FalseWakeUpIsForgotten) {
  Node node;
  node.follow({turns(TimePoint{1s})});
  node.pass(600ms);
  node.follow({with_background(g_now)});
  node.tasks[0].is_busy = true;
  node.pass(60ms);
  node.tasks[0].is_busy = false;
  EXPECT_FALSE(node.is_idle(0));
  node.pass(2s);
  EXPECT_TRUE(node.is_idle(0));
  EXPECT_TRUE(node.tasks[0].is_running);
}

// Two idle attempts could keep each other from being idle for long. An attempt that returns because
// no other needs its cores would seem busy and displace the other one.
TEST(IdleWatch, StateIsKeptWhenLeavingBackground) {
  Node node;
  node.follow({turns(TimePoint{1s})});
  node.pass(600ms);
  node.follow({with_background(g_now)});
  node.pass(500ms);
  EXPECT_TRUE(node.is_idle(0));
  node.changes = 0;
  node.follow({turns(g_now)});
  node.pass(2s);
  EXPECT_TRUE(node.is_idle(0));
  EXPECT_EQ(node.changes, 0);
  node.tasks[0].is_busy = true;
  node.pass(200ms);
  EXPECT_FALSE(node.is_idle(0));
}

TEST(IdleWatch, TraceShowsOnlyTurns) {
  Node node;
  node.follow({turns(TimePoint{1s})});
  node.pass(650ms);  // in the slice of 1
  node.follow({with_background(g_now)});
  node.pass(500ms);
  const auto records = node.trace.read(TimePoint{1600ms}).records;
  ASSERT_FALSE(records.empty());
  EXPECT_EQ(records[0].left[0], AttemptId{1}) << "its turn is over, though it runs on";
  for (const auto& record : records) {
    for (std::uint32_t i = 0; i < record.entered_count; ++i) {
      EXPECT_NE(record.entered[i], AttemptId{1});
    }
  }
}

TEST(IdleWatch, WithoutNeighbourNoAttemptIsHeld) {
  Node node;
  SwitchPlan alone{Epoch{3}, g_now, 0ms, {}, {}};
  alone.background = ids({1});
  node.follow({alone});
  node.tasks[0].is_busy = true;
  node.pass(5s);
  EXPECT_TRUE(node.tasks[0].is_running);
  EXPECT_LE(node.steps, 8);
}

TEST(IdleWatch, UnreadableUsageIsNeverIdle) {
  Node node;
  node.tasks[0].is_unreadable = true;
  node.follow({turns(TimePoint{1s})});
  node.pass(2s);
  EXPECT_FALSE(node.is_idle(0));
  EXPECT_EQ(node.changes, 0);
}

}  // namespace
}  // namespace score::node
