// Tests how samples become the figures of a document.
#include "base/model/model.hpp"
#include "monitor/meters/cluster_meter.hpp"
#include "monitor/meters/late_reports.hpp"

#include <gtest/gtest.h>

namespace score::monitor {
namespace {

const AttemptId kFirst = base::make_attempt(JobId(1), 1);
const AttemptId kSecond = base::make_attempt(JobId(2), 1);

TaskSample task(Duration user, bool waits = false, std::uint64_t bytes = 0) {
  TaskSample made;
  made.pid = 7;
  made.state = TaskState::Running;
  made.user = user;
  made.processes = 1;
  made.pm = PmReading{waits, {0, 0, bytes, 0}};
  return made;
}

NodeSample sample(TimePoint taken, Duration scheduled, const TaskSample& of) {
  NodeSample made;
  made.taken = taken;
  made.gangs.push_back({kFirst, scheduled, true, {of}, {}});
  return made;
}

TEST(LoadMeter, FrozenGangIsNotIdle) {
  LoadMeter meter;
  meter.feed(sample(TimePoint(10s), 1s, task(1s)));
  // In 200 ms it was scheduled for 50 ms and computed all of this time.
  meter.feed(sample(TimePoint(10200ms), 1050ms, task(1050ms)));
  ASSERT_EQ(meter.load().tasks.size(), 1U);
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].user, 1.0);
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].scheduled, 0.25);
  EXPECT_DOUBLE_EQ(meter.load().user, 0.25);
}

TEST(LoadMeter, ShowsTheLastSliceOfAFrozenGang) {
  LoadMeter meter;
  meter.feed(sample(TimePoint(10s), 1s, task(1s)));
  meter.feed(sample(TimePoint(10100ms), 1100ms, task(1080ms)));
  meter.feed(sample(TimePoint(10200ms), 1100ms, task(1080ms)));
  meter.feed(sample(TimePoint(10300ms), 1100ms + 40us, task(1080ms)));
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].user, 0.8);
  EXPECT_DOUBLE_EQ(meter.load().user, 0) << "the node's load is of real time";
  EXPECT_LT(meter.load().tasks[0].scheduled, 0.001);
  meter.feed(sample(TimePoint(10400ms), 1200ms, task(1080ms)));
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].user, 0);
}

TEST(LoadMeter, DistinguishesStarvedFromSleepingTasks) {
  LoadMeter meter;
  const auto starved = [](Duration user, Duration waited) {
    TaskSample made = task(user);
    made.waited = waited;
    return made;
  };
  meter.feed(sample(TimePoint(10s), 1s, starved(1s, 7s)));
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].waited, 0);
  meter.feed(sample(TimePoint(10200ms), 1100ms, starved(1003ms, 7090ms)));
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].waited, 0.9);
  meter.feed(sample(TimePoint(10300ms), 1100ms, starved(1003ms, 7090ms)));
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].waited, 0.9) << "frozen: its last slice";
  meter.feed(sample(TimePoint(10400ms), 1200ms, starved(1003ms, 7090ms)));
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].waited, 0);
}

TEST(LoadMeter, FillingIsNeitherLoadNorWaiting) {
  LoadMeter meter;
  const auto filling = [](Duration user, Duration waited, Duration filled, TimePoint at,
                          Duration scheduled) {
    TaskSample made = task(user);
    made.waited = waited;
    NodeSample all = sample(at, scheduled, made);
    all.gangs[0].filled = filled;
    return all;
  };
  meter.feed(filling(1s, 0s, 0s, TimePoint(10s), 1s));
  meter.feed(filling(1080ms, 10ms, 0s, TimePoint(10100ms), 1100ms));
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].waited, 0.1);
  // It had 100 ms in its slice, of which it used 80, and 100 ms filling, of which it used 30 and
  // waited for 70.
  meter.feed(filling(1190ms, 80ms, 30ms, TimePoint(10300ms), 1200ms));
  EXPECT_NEAR(meter.load().tasks[0].user, 0.8, 1e-9);
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].waited, 0.1) << "as in its last slice without filling";
  EXPECT_NEAR(meter.load().user, 0.55, 1e-9) << "the node's load has all of it";
  meter.feed(filling(1190ms, 80ms, 300s, TimePoint(10500ms), 1300ms));
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].user, 0) << "a total that cannot be";
}

// A filler without processor time waits for the processor and for messages, but not in its own
// slices.
TEST(LoadMeter, StarvedFillerIsNotWaiting) {
  LoadMeter meter;
  const auto feed = [&meter](TimePoint at, Duration scheduled, Duration waited, bool fills) {
    TaskSample made = task(0s, fills);
    made.waited = waited;
    NodeSample all = sample(at, scheduled, made);
    all.gangs[0].fills = fills;
    all.gangs[0].runs = !fills;
    meter.feed(all);
  };
  feed(TimePoint(10s), 1s, 0s, false);
  feed(TimePoint(10100ms), 1100ms, 10ms, false);
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].waited, 0.1);
  feed(TimePoint(10200ms), 1150ms, 60ms, true);
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].waited, 0.1) << "it began to fill";
  EXPECT_EQ(meter.load().tasks[0].state, TaskState::Fills);
  EXPECT_DOUBLE_EQ(*meter.load().tasks[0].pm_wait, 0);
  feed(TimePoint(10300ms), 1200ms, 110ms, false);
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].waited, 0.1) << "it filled until a moment ago";
  EXPECT_EQ(meter.load().tasks[0].state, TaskState::Running);
  feed(TimePoint(10400ms), 1300ms, 130ms, false);
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].waited, 0.2);
}

TEST(LoadMeter, ShowsFilledTimePerScheduledTime) {
  LoadMeter meter;
  // Turns take 100 ms: it uses half of its own turns, and 40 ms of each other turn.
  for (int i = 0; i <= 20; ++i) {
    NodeSample all = sample(TimePoint(10s + i * 100ms), (i + 1) / 2 * 100ms,
                            task((i + 1) / 2 * 50ms + i / 2 * 40ms));
    all.gangs[0].filled = i / 2 * 40ms;
    all.gangs[0].fills = i % 2 == 0;
    meter.feed(all);
    if (i == 0) continue;
    EXPECT_NEAR(meter.load().tasks[0].user, 0.5, 1e-9);
    EXPECT_NEAR(meter.load().filled, i % 2 == 0 ? 0.4 : 0, 1e-9);
  }
  EXPECT_NEAR(meter.load().tasks[0].filled, 0.4, 0.05);
}

TEST(LoadMeter, CountsFilledTimeOnce) {
  LoadMeter meter;
  double cores = 0;
  // Samples between two boundaries lack the time filled since the last boundary.
  for (const Duration filled : {0ms, 50ms, 20ms, 60ms}) {
    NodeSample all = sample(meter.load().taken + 1s, 0s, task(filled));
    all.gangs[0].filled = filled;
    meter.feed(all);
    cores += meter.load().filled;
  }
  EXPECT_NEAR(cores, 0.06, 1e-9);
}

TEST(LoadMeter, HasNoRatesAfterOneSample) {
  LoadMeter meter;
  EXPECT_FALSE(meter.has_sample());
  meter.feed(sample(TimePoint(10s), 1s, task(1s)));
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].user, 0);
  meter.feed(sample(TimePoint(9s), 5s, task(5s)));
  EXPECT_EQ(meter.load().taken, TimePoint(10s));
}

TEST(LoadMeter, TotalThatWentBackIsIgnored) {
  LoadMeter meter;
  meter.feed(sample(TimePoint(10s), 1s, task(1s, false, 5'000)));
  meter.feed(sample(TimePoint(11s), 2s, task(200ms, false, 10)));
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].user, 0);
  EXPECT_DOUBLE_EQ(meter.load().tasks[0].traffic->sent_bytes, 0);
}

TEST(LoadMeter, AveragesWaitsInPmOverScheduledTime) {
  LoadMeter meter;
  for (int i = 0; i <= 20; ++i) {
    meter.feed(sample(TimePoint(10s + i * 100ms), i * 100ms, task(0s, i % 2 == 0)));
  }
  EXPECT_NEAR(*meter.load().tasks[0].pm_wait, 0.5, 0.2);
}

TEST(LoadMeter, ShowsTrafficPerSecond) {
  LoadMeter meter;
  meter.feed(sample(TimePoint(10s), 0s, task(0s, false, 1'000)));
  meter.feed(sample(TimePoint(10500ms), 0s, task(0s, false, 2'000)));
  EXPECT_DOUBLE_EQ(meter.load().traffic->sent_bytes, 2'000);
}

TEST(LoadMeter, ShowsTrafficBetweenSlices) {
  LoadMeter meter;
  std::uint64_t bytes = 0;
  for (int i = 0; i < 100; ++i) {
    if (i % 2 == 0) bytes += 1'000;
    meter.feed(sample(TimePoint(10s + i * 100ms), i * 50ms, task(0s, false, bytes)));
    if (i < 60) continue;  // the first period counts until then
    EXPECT_NEAR(meter.load().traffic->sent_bytes, 5'000, 300);
  }
}

NodeSample switched(TimePoint taken, TimePoint due, AttemptId left, AttemptId entered) {
  NodeSample made;
  made.taken = taken;
  made.switches.push_back({due, 10us, 20us, 30us, {left}, {entered}, {}, {}, {}, {}});
  made.gangs.push_back({entered, 0s, true, {}, {}});
  made.gangs.push_back({left, 0s, false, {}, {}});
  return made;
}

TEST(LateReports, ReportsFirstAtOnceAndRestTogether) {
  constexpr Duration kPause = 10s;
  LateReports<LateSwitch> reports(kPause);
  EXPECT_FALSE(reports.take(TimePoint(1s)));
  reports.add({1, NodeId(3), TimePoint(1s), 2ms, 20ms});
  const auto first = reports.take(TimePoint(1s));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->count, 1U);
  EXPECT_EQ(first->worst.id, 1U);
  for (std::uint64_t i = 2; i < 50; ++i) {
    reports.note_switches(10);
    reports.add({i, NodeId(4), TimePoint(2s), i == 30 ? 9ms : 3ms, 20ms});
    EXPECT_FALSE(reports.take(TimePoint(2s)));
  }
  const auto rest = reports.take(TimePoint(1s) + kPause);
  ASSERT_TRUE(rest);
  EXPECT_EQ(rest->count, 48U);
  EXPECT_EQ(rest->switches, 480U);
  EXPECT_EQ(rest->worst.id, 30U);
  EXPECT_FALSE(reports.take(TimePoint(30s)));
}

TEST(RunHistory, FollowsSwitchesToTheMicrosecond) {
  RunHistory history;
  history.feed(switched(TimePoint(1050ms), TimePoint(1s), kSecond, kFirst));
  history.feed(switched(TimePoint(1150ms), TimePoint(1100ms), kFirst, kSecond));
  const auto runs = history.between(TimePoint(0s), TimePoint(2s));
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0], (monitor::JobRun{JobId(1), TimePoint(1s) + 30us, TimePoint(1100ms) + 20us}));
  EXPECT_EQ(runs[1], (monitor::JobRun{JobId(2), TimePoint(1100ms) + 30us, std::nullopt}));
}

TEST(RunHistory, ShowsAJobThatIsNeverSwitched) {
  RunHistory history;
  history.feed(sample(TimePoint(1s), 0s, task(0s)));
  history.feed(sample(TimePoint(2s), 1s, task(1s)));
  ASSERT_EQ(history.between(TimePoint(0s), TimePoint(3s)).size(), 1U);
  NodeSample gone;
  gone.taken = TimePoint(3s);
  history.feed(gone);
  EXPECT_EQ(history.between(TimePoint(0s), TimePoint(4s))[0],
            (monitor::JobRun{JobId(1), TimePoint(1s), TimePoint(3s)}));
  EXPECT_TRUE(history.between(TimePoint(3s), TimePoint(4s)).empty());
}

TEST(RunHistory, EndsAKilledJobWithItsLastTask) {
  RunHistory history;
  history.feed(sample(TimePoint(1s), 0s, task(0s)));
  history.task_ended(JobId(1), TimePoint(1300ms));
  history.feed(sample(TimePoint(1500ms), 500ms, task(0s)));
  history.task_ended(JobId(1), TimePoint(1700ms));
  history.task_ended(JobId(2), TimePoint(1800ms));
  NodeSample gone;
  gone.taken = TimePoint(2s);
  history.feed(gone);
  EXPECT_EQ(history.between(TimePoint(0s), TimePoint(4s)),
            (std::vector{monitor::JobRun{JobId(1), TimePoint(1s), TimePoint(1700ms)}}));
  // This does not apply to a run that began later.
  history.feed(sample(TimePoint(3s), 500ms, task(0s)));
  gone.taken = TimePoint(4s);
  history.feed(gone);
  EXPECT_EQ(history.between(TimePoint(2500ms), TimePoint(5s)),
            (std::vector{monitor::JobRun{JobId(1), TimePoint(3s), TimePoint(4s)}}));
}

TEST(RunHistory, FollowsFillingJobs) {
  RunHistory history;
  NodeSample first = switched(TimePoint(1050ms), TimePoint(1s), kSecond, kFirst);
  first.switches[0].filling = {kSecond};
  first.gangs[1].fills = true;
  history.feed(first);
  const auto fills = [&] { return history.fills_between(TimePoint(0s), TimePoint(2s)); };
  EXPECT_EQ(fills(), (std::vector{monitor::JobRun{JobId(2), TimePoint(1s) + 30us, std::nullopt}}));
  NodeSample second = switched(TimePoint(1150ms), TimePoint(1100ms), kFirst, kSecond);
  second.switches[0].filling = {kFirst};
  second.gangs[1].fills = true;
  history.feed(second);
  ASSERT_EQ(fills().size(), 2U);
  EXPECT_EQ(fills()[0],
            (monitor::JobRun{JobId(2), TimePoint(1s) + 30us, TimePoint(1100ms) + 20us}));
  EXPECT_EQ(fills()[1], (monitor::JobRun{JobId(1), TimePoint(1100ms) + 30us, std::nullopt}));
  second.switches.clear();
  second.taken = TimePoint(1180ms);
  second.gangs[1].fills = false;
  history.feed(second);
  EXPECT_EQ(fills()[1].end, TimePoint(1180ms)) << "it was stopped without a switch";
  EXPECT_EQ(history.between(TimePoint(0s), TimePoint(2s)).size(), 2U) << "turns are no fills";
}

TEST(RunHistory, ForgetsOldRunsAndBoundsTheRest) {
  RunHistory history;
  for (int i = 0; i < 30'000; ++i) {
    const TimePoint due = TimePoint(1s) + i * 1ms;
    history.feed(i % 2 == 0 ? switched(due + 500us, due, kSecond, kFirst)
                            : switched(due + 500us, due, kFirst, kSecond));
  }
  EXPECT_LE(history.between(TimePoint(0s), TimePoint(100s)).size(), 6'010U);
}

NodeSample one_switch(TimePoint due, Duration woke, Duration done) {
  NodeSample made;
  made.taken = due + 50ms;
  made.switches.push_back(
      {due, woke, woke + 5us, done, {kFirst}, {kSecond}, {}, {}, {}, {}, 20ms, true});
  return made;
}

TEST(SwitchWindow, MeasuresPhasesAndSkew) {
  SwitchWindow window;
  window.feed(NodeId(0), one_switch(TimePoint(1s), 10us, 40us));
  window.feed(NodeId(1), one_switch(TimePoint(1s) + 2us, 20us, 140us));
  const auto summary = window.summary(TimePoint(0s), TimePoint(2s));
  EXPECT_EQ(summary.count, 2U);
  EXPECT_EQ(summary.phases[static_cast<std::size_t>(SwitchPhase::Wake)].max, 20us);
  EXPECT_EQ(summary.phases[static_cast<std::size_t>(SwitchPhase::Total)].max, 140us);
  EXPECT_EQ(summary.skew.count, 1U);
  EXPECT_EQ(summary.skew.max, 102us);
  EXPECT_EQ(*summary.mean_overhead, 90us);
  EXPECT_EQ(window.summary(TimePoint(2s), TimePoint(3s)).count, 0U);
}

TEST(SwitchWindow, RemembersLateOnes) {
  SwitchWindow window;
  EXPECT_TRUE(window.feed(NodeId(0), one_switch(TimePoint(1s), 900us, 950us)).empty());
  const auto late = window.feed(NodeId(3), one_switch(TimePoint(2s), 4ms, 5ms));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(window.last_late()->node, NodeId(3));
  EXPECT_EQ(window.late(late[0].id)->late, 4ms);
  EXPECT_FALSE(window.late(late[0].id + 1));
}

TEST(SwitchWindow, CountsASkewOnceAfterAllReports) {
  SwitchWindow window;
  for (int i = 0; i < 50; ++i) {
    for (std::uint32_t node = 0; node < 4; ++node) {
      window.feed(NodeId(node), one_switch(TimePoint(1s + i * 100ms), 10us, (20 + node) * 1us));
    }
  }
  std::uint64_t count = 0;
  for (const auto bucket : window.skews().counts) count += bucket;
  EXPECT_GT(count, 25U);
  EXPECT_LT(count, 50U);
}

TEST(ClusterMeter, ReturnsTheShareOfSwitching) {
  ClusterMeter meter;
  EXPECT_FALSE(meter.overhead().share());
  for (int i = 0; i < 20; ++i) {
    NodeSample made;
    made.taken = TimePoint(1s * (i + 1));
    made.totals.emplace();
    made.totals->switches = static_cast<std::uint64_t>(i) * 10;
    made.totals->overhead = {.wake = i * 3ms, .stop = i * 1ms, .network = 0ms, .go = i * 1ms};
    made.totals->busy = i * 1s;
    meter.feed(NodeId(2), made);
  }
  EXPECT_NEAR(*meter.overhead().share(), 0.005, 1e-9);
  EXPECT_NEAR(*meter.overhead(NodeId(2)).share(), 0.005, 1e-9);
  EXPECT_EQ(meter.overhead().spent.wake, 3 * meter.overhead().spent.go);
  EXPECT_FALSE(meter.overhead(NodeId(0)).share());
  EXPECT_NEAR(meter.switches_per_second(), 10, 1e-9);
  meter.interrupt(NodeId(2), TimePoint(30s));
  EXPECT_FALSE(meter.overhead().share());
  EXPECT_EQ(meter.load(NodeId(2)), nullptr);
}

TEST(ClusterMeter, OlderSampleIsNoRestart) {
  ClusterMeter meter;
  for (const int second : {1, 2, 4, 3, 5}) {  // a scrape overtook queued samples
    NodeSample made;
    made.taken = TimePoint(1s * second);
    made.totals.emplace();
    made.totals->switches = static_cast<std::uint64_t>(second) * 10;
    made.totals->busy = second * 1s;
    made.totals->overhead.wake = second * 10ms;
    meter.feed(NodeId(0), made);
  }
  EXPECT_NEAR(meter.switches_per_second(), 10, 1e-9);
  EXPECT_NEAR(*meter.overhead().share(), 0.01, 1e-9);
}

// ---- counters of the cluster ------------------------------------------------------------------

NodeSample totals_of(int second, std::uint64_t switches) {
  NodeSample made;
  made.taken = TimePoint(1s * second);
  made.totals_only = true;
  made.totals.emplace();
  made.totals->switches = switches;
  made.totals->busy = switches * 1s;
  for (std::uint64_t i = 0; i < switches; ++i) made.totals->phases[0].add(30us);
  return made;
}

TEST(ClusterMeter, CountsANodeFromItsFirstSample) {
  ClusterMeter meter;
  meter.feed(NodeId(0), totals_of(1, 1'000));
  EXPECT_EQ(meter.sum().switches, 0U) << "weeks of work in no time";
  meter.feed(NodeId(0), totals_of(2, 1'007));
  EXPECT_EQ(meter.sum().switches, 7U);
  meter.feed(NodeId(1), totals_of(3, 500));
  EXPECT_EQ(meter.sum().switches, 7U);
}

TEST(ClusterMeter, AddsTheProcessorTimeOfNodes) {
  ClusterMeter meter;
  for (int second = 1; second <= 3; ++second) {
    NodeSample sample = totals_of(second, 1'000);
    sample.totals->user = std::chrono::seconds(100 * second);
    sample.totals->system = std::chrono::seconds(10 * second);
    sample.totals->filled = std::chrono::seconds(second);
    for (const NodeId node : {NodeId(0), NodeId(1)}) meter.feed(node, sample);
  }
  EXPECT_EQ(meter.sum().user, 400s);
  EXPECT_EQ(meter.sum().system, 40s);
  EXPECT_EQ(meter.sum().filled, 4s);
}

NodeTotals counts_of(std::uint64_t switches) {
  NodeTotals counts;
  counts.switches = switches;
  counts.busy = switches * 1s;
  counts.is_whole = false;
  return counts;
}

TEST(ClusterMeter, PartialTotalsKeepOtherFields) {
  ClusterMeter meter;
  NodeSample part;
  part.taken = TimePoint(1s);
  part.totals = counts_of(1'000);
  meter.feed(NodeId(0), part);
  EXPECT_EQ(meter.totals(NodeId(0)), nullptr) << "its phases are not known";
  meter.feed(NodeId(0), totals_of(2, 1'000));
  part.taken = TimePoint(3s);
  part.totals = counts_of(1'004);
  meter.feed(NodeId(0), part);
  EXPECT_EQ(meter.sum().switches, 4U);
  EXPECT_EQ(meter.totals(NodeId(0))->phases[0].counts[1], 1'000U);
  EXPECT_EQ(meter.sum().phases[0].counts[1], 0U);
  meter.feed(NodeId(0), totals_of(4, 1'006));
  EXPECT_EQ(meter.sum().switches, 6U);
  EXPECT_EQ(meter.sum().phases[0].counts[1], 6U);
  part.taken = TimePoint(5s);
  part.totals = counts_of(2);  // the daemon restarted
  meter.feed(NodeId(0), part);
  meter.feed(NodeId(0), totals_of(6, 3));
  EXPECT_EQ(meter.sum().switches, 9U);
  EXPECT_EQ(meter.sum().phases[0].counts[1], 9U);
}

TEST(ClusterMeter, SumNeverDecreasesAfterARestart) {
  ClusterMeter meter;
  for (const std::uint32_t node : {0U, 1U}) meter.feed(NodeId(node), totals_of(1, 0));
  meter.feed(NodeId(0), totals_of(2, 100));
  meter.feed(NodeId(1), totals_of(2, 50));
  meter.interrupt(NodeId(0), TimePoint(3s));
  meter.feed(NodeId(0), totals_of(4, 3));
  EXPECT_EQ(meter.sum().switches, 153U);
  EXPECT_EQ(meter.sum().busy, 153s);
  EXPECT_EQ(meter.sum().phases[0].counts[1], 153U);
  EXPECT_EQ(meter.sum().phases[0].sum, 153 * 30us);
  EXPECT_EQ(meter.totals(NodeId(0))->switches, 3U) << "its own are its own";
}

}  // namespace
}  // namespace score::monitor
