// These tests take snapshots between two full samples, and make samples of them.
#include "scored/node/observe/snapshots.hpp"

#include "scored/node/observe/task_track.hpp"
#include "scored/node/switch/switch_entry.hpp"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

namespace score::node {
namespace {

using monitor::TaskSample;
using monitor::TaskState;

constexpr AttemptId kAttempt{7};

struct NoTarget final : SwitchTarget {
  int stop() noexcept override { return 0; }

  int go() noexcept override { return 0; }
};

// Holds an attempt whose only process is this one.
struct Observed {
  Observed() {
    entries.push_back(std::make_shared<SwitchEntry>(kAttempt, std::make_unique<NoTarget>()));
    entries[0]->clock.start(TimePoint(1s));
  }

  std::optional<TimePoint> observe(TimePoint now, std::optional<TimePoint> boundary = {}) {
    return snapshots.observe(now, boundary, entries);
  }

  std::vector<TimePoint> taken() {
    std::vector<TimePoint> all;
    snapshots.fetch([&](const Snapshot& snapshot) { all.push_back(snapshot.taken); });
    return all;
  }

  std::vector<std::shared_ptr<SwitchEntry>> entries;
  Snapshots snapshots{100ms, {{kAttempt, {{getpid()}}, nullptr}}};
};

TEST(Snapshots, AreTakenEachPeriodWithoutSwitches) {
  Observed observed;
  TimePoint now(10s);
  for (int i = 0; i < 5; ++i) {
    const auto next = observed.observe(now);
    ASSERT_TRUE(next);
    EXPECT_EQ(*next - now, 100ms);
    now = *next;
  }
  EXPECT_EQ(observed.taken().size(), 5U);
}

TEST(Snapshots, NeedNoWakeUpIfSliceEqualsPeriod) {
  Observed observed;
  for (int i = 0; i < 10; ++i) {
    // The switch takes up to 90 us, so this is not the boundary itself.
    const TimePoint now = TimePoint(10s + i * 100ms) + Duration((i * 37) % 90 * 1us);
    EXPECT_EQ(observed.observe(now, TimePoint(10s + (i + 1) * 100ms)), std::nullopt);
  }
  EXPECT_EQ(observed.taken().size(), 10U);
}

TEST(Snapshots, TakeEachTenthOfShortSlices) {
  Observed observed;
  for (int i = 0; i < 101; ++i) {
    EXPECT_LE(observed.observe(TimePoint(10s + i * 10ms), TimePoint(10s + (i + 1) * 10ms)),
              TimePoint(10s + 1110ms));
    if (i % 50 != 0) continue;
    EXPECT_EQ(observed.taken().size(), i == 0 ? 1U : 5U);
  }
}

TEST(Snapshots, WakeUpByThemselvesInLongSlices) {
  Observed observed;
  EXPECT_EQ(observed.observe(TimePoint(10s), TimePoint(11s)), TimePoint(10100ms));
  EXPECT_EQ(observed.observe(TimePoint(10100ms), TimePoint(11s)), TimePoint(10200ms));
  // The thread wakes up early for a different reason, and the time of the next snapshot does not
  // change.
  EXPECT_EQ(observed.observe(TimePoint(10130ms), TimePoint(11s)), TimePoint(10200ms));
  EXPECT_EQ(observed.taken(), (std::vector{TimePoint(10s), TimePoint(10100ms)}));
}

TEST(Snapshots, AreKeptUntilFetchedAndExcessIsDropped) {
  Observed observed;
  for (int i = 0; i < 40; ++i) observed.observe(TimePoint(10s + i * 100ms));
  const auto taken = observed.taken();
  ASSERT_EQ(taken.size(), Snapshots::kMostKept);
  EXPECT_EQ(taken.front(), TimePoint(10s));
  observed.observe(TimePoint(20s));
  EXPECT_EQ(observed.taken(), std::vector{TimePoint(20s)});
}

TEST(Snapshots, CountAllThreadsAndSkipStoppedGangs) {
  Observed observed;
  observed.observe(TimePoint(10s));
  const auto before = observed.snapshots.used();
  while (observed.snapshots.used()[0] < before[0] + 2ms) continue;
  observed.entries[0]->clock.stop(TimePoint(10s));
  observed.observe(TimePoint(10100ms));
  observed.entries[0]->clock.start(TimePoint(10200ms));
  observed.observe(TimePoint(10300ms));
  std::vector<Snapshot> seen;
  observed.snapshots.fetch([&](const Snapshot& snapshot) { seen.push_back(snapshot); });
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_TRUE(seen[0].gangs[0].runs);
  EXPECT_FALSE(seen[1].gangs[0].runs);
  EXPECT_EQ(seen[1].gangs[0].ran, seen[0].gangs[0].ran);
  EXPECT_EQ(seen[1].tasks[0].used, seen[0].tasks[0].used) << "it was read though it had not run";
  EXPECT_GE(seen[2].tasks[0].used, before[0] + 2ms);
}

TEST(Snapshots, ReportThatAttemptIsGone) {
  Observed observed;
  observed.entries.clear();
  observed.observe(TimePoint(10s));
  observed.snapshots.fetch(
      [](const Snapshot& snapshot) { EXPECT_FALSE(snapshot.gangs[0].is_there); });
}

TEST(Snapshots, SurviveAProcessThatIsGone) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  Observed observed;
  Snapshots snapshots(100ms, {{kAttempt, {{child, getpid()}, {}}, nullptr}});
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  snapshots.observe(TimePoint(10s), std::nullopt, observed.entries);
  snapshots.fetch([](const Snapshot& snapshot) {
    ASSERT_EQ(snapshot.tasks.size(), 2U);
    EXPECT_GT(snapshot.tasks[0].used, Duration(0));
    EXPECT_EQ(snapshot.tasks[1].used, Duration(0));
  });
}

// ---- Samples made of snapshots ------------------------------------------------------------------

TaskSample full(Duration user, Duration system, TaskState state, Duration waited = 0s) {
  TaskSample sample;
  sample.waited = waited;
  sample.user = user;
  sample.system = system;
  sample.state = state;
  sample.switches = static_cast<std::uint64_t>(user.count()) / 1'000'000;  // one per millisecond
  sample.processes = 1;
  return sample;
}

GangSnapshot running(Duration ran) {
  return {true, ran, true, true};
}

GangSnapshot frozen(Duration ran) {
  return {true, ran, false, false};
}

TEST(TaskTrack, DistributesUseByProcessorTime) {
  TaskTrack track;
  track.mark(full(1s, 500ms, TaskState::Running), {1500ms, 2s});
  track.expect(full(1300ms, 600ms, TaskState::Running), {1900ms, 2400ms});
  const auto first = track.at(running(2100ms), {1600ms, {}});
  EXPECT_EQ(first.user, 1075ms);
  EXPECT_EQ(first.system, 525ms);
  EXPECT_EQ(first.switches, 1'075U);
  const auto second = track.at(frozen(2100ms), {1600ms, {}});
  EXPECT_EQ(second.user, first.user);
  EXPECT_EQ(second.state, TaskState::Frozen);
  const auto third = track.at(running(2400ms), {1900ms, {}});
  EXPECT_EQ(third.user, 1300ms);
  EXPECT_EQ(third.system, 600ms);
}

TEST(TaskTrack, NeverGoesBackNorBeyondTheNextSample) {
  TaskTrack track;
  track.mark(full(1s, 0s, TaskState::Running), {1s, 1s});
  track.expect(full(1100ms, 0s, TaskState::Running), {1100ms, 1300ms});
  EXPECT_EQ(track.at(running(1100ms), {1080ms, {}}).user, 1080ms);
  EXPECT_EQ(track.at(running(1200ms), {300ms, {}}).user, 1080ms) << "a process ended";
  EXPECT_EQ(track.at(running(1300ms), {9s, {}}).user, 1100ms);
  // All of its processes are gone, so the values are lower than before.
  track.mark(full(1100ms, 0s, TaskState::Running), {1100ms, 1300ms});
  track.expect(full(0s, 0s, TaskState::Ended), {0s, 1400ms});
  EXPECT_EQ(track.at(running(1400ms), {0s, {}}).user, 1100ms);
}

TEST(TaskTrack, DistinguishesComputingFromWaiting) {
  TaskTrack busy, asleep;
  for (TaskTrack* track : {&busy, &asleep}) track->mark(full(0s, 0s, TaskState::Frozen), {});
  TaskState last{};
  for (int i = 1; i <= 20; ++i) {
    const auto gang = running(i * 100ms);
    EXPECT_EQ(busy.at(gang, {i * 99ms, {}}).state, TaskState::Running);
    last = asleep.at(gang, {i * 1ms, {}}).state;
  }
  EXPECT_EQ(last, TaskState::Blocked);
  const monitor::PmReading waits{true, {}};
  EXPECT_EQ(busy.at(running(2100ms), {2s, waits}).state, TaskState::WaitsInPm);
  EXPECT_EQ(busy.at(frozen(2100ms), {2s, waits}).state, TaskState::Frozen);
}

// The gang has whole turns of half a second, and two full samples found it frozen.
TEST(TaskTrack, DetectsSleepAndWakeUpWithinTheSlice) {
  TaskTrack track;
  track.mark(full(0s, 0s, TaskState::Running), {});
  track.expect(full(250ms, 0s, TaskState::Frozen), {250ms, 500ms});
  EXPECT_EQ(track.at(running(100ms), {100ms, {}}).state, TaskState::Running);
  EXPECT_EQ(track.at(running(200ms), {200ms, {}}).state, TaskState::Running);
  EXPECT_EQ(track.at(running(300ms), {205ms, {}}).state, TaskState::Blocked);
  EXPECT_EQ(track.at(running(400ms), {205ms, {}}).state, TaskState::Blocked);
  EXPECT_EQ(track.at(running(500ms), {290ms, {}}).state, TaskState::Running);
}

// 32 processes compete for each processor. The task gets it in every third slice only, for a
// moment, and its waiting time is counted then.
TEST(TaskTrack, StarvedTaskCountsAsBusyUntilSeenAsleep) {
  TaskTrack track;
  track.mark(full(0s, 0s, TaskState::Running), {});
  const auto until = [](int slices) { return TaskTotals{slices / 3 * 9ms, slices * 100ms}; };
  const auto at = [](int slices) { return full(1s, 0s, TaskState::Frozen, slices / 3 * 280ms); };
  for (int slice = 1; slice <= 30; ++slice) {
    if (slice % 5 == 1) track.expect(at(slice + 4), until(slice + 4));
    EXPECT_EQ(track.at(running(slice * 100ms), {until(slice).used, {}}).state, TaskState::Running)
        << slice;
    if (slice % 5 == 0) track.mark(at(slice), until(slice));
  }
  TaskTotals later = until(30);
  later.ran += 500ms;
  track.expect(full(1s, 0s, TaskState::Blocked, at(30).waited), later);
  EXPECT_EQ(track.at(running(3100ms), {later.used, {}}).state, TaskState::Blocked);
}

TEST(TaskTrack, DistributesWaitingByRunTimeOfGang) {
  TaskTrack track;
  track.mark(full(0s, 0s, TaskState::Running, 1s), {0s, 2s});
  track.expect(full(10ms, 0s, TaskState::Running, 1400ms), {10ms, 2500ms});
  EXPECT_EQ(track.at(running(2100ms), {0s, {}}).waited, 1080ms) << "it got no processor";
  EXPECT_EQ(track.at(frozen(2100ms), {0s, {}}).waited, 1080ms);
  EXPECT_EQ(track.at(running(2500ms), {10ms, {}}).waited, 1400ms);
  EXPECT_EQ(track.at(running(2600ms), {10ms, {}}).waited, 1400ms) << "not beyond the next sample";
}

}  // namespace
}  // namespace score::node
