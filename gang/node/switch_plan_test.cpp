#include "gang/node/switch_plan.hpp"

#include "base/limits.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;
using Ids = std::vector<AttemptId>;

constexpr AttemptId kA{1}, kB{2};
constexpr TimePoint kStart{100s};

base::Timetable table(std::vector<base::Segment> segments, Duration cycle) {
  return {Epoch{1}, kStart, cycle, std::move(segments), {kA, kB}};
}

const base::Timetable kTwo = table({{0ms, 100ms, {kA}}, {100ms, 100ms, {kB}}}, 200ms);

TEST(SwitchPlan, RepeatsItsSegmentsForEver) {
  const SwitchPlan plan = *make_plan(kTwo, kStart);
  EXPECT_EQ(running_at(plan, kStart - 1ns), nullptr);
  for (const auto cycle : {0, 1, 1000000}) {
    const TimePoint t = kStart + cycle * 200ms;
    EXPECT_EQ(*running_at(plan, t), Ids{kA});
    EXPECT_EQ(*running_at(plan, t + 100ms - 1ns), Ids{kA});
    EXPECT_EQ(*running_at(plan, t + 100ms), Ids{kB});
  }
}

struct NextCase {
  const char* name;
  base::Timetable table;
  Duration after;  // kStart
  std::optional<Duration> at;
  Ids run;
};

TEST(SwitchPlan, FindsTheNextChange) {
  const NextCase cases[] = {
      {"before the start", kTwo, -1s, 0ms, {kA}},
      {"at the start", kTwo, 0ms, 100ms, {kB}},
      {"just before a boundary", kTwo, 100ms - 1ns, 100ms, {kB}},
      {"at a boundary", kTwo, 100ms, 200ms, {kA}},
      {"one set only: never", table({{0ms, 50ms, {kA}}}, 50ms), 7s, std::nullopt, {}},
      {"equal neighbours are one",
       table({{0ms, 50ms, {kA}}, {50ms, 50ms, {kA}}}, 100ms),
       7s,
       std::nullopt,
       {}},
      {"over the end of the cycle",
       table({{0ms, 50ms, {kA}}, {50ms, 50ms, {kB}}, {100ms, 50ms, {kA}}}, 150ms),
       120ms,
       200ms,
       {kB}},
      {"no segments", {Epoch{1}, kStart, 0ms, {}, {}}, -1s, std::nullopt, {}},
  };
  for (const NextCase& c : cases) {
    const auto plan = make_plan(c.table, kStart);
    ASSERT_TRUE(plan) << c.name;
    const auto next = next_switch(*plan, kStart + c.after);
    ASSERT_EQ(next.has_value(), c.at.has_value()) << c.name;
    if (!next) continue;
    EXPECT_EQ(next->at, kStart + *c.at) << c.name;
    EXPECT_EQ(*next->run, c.run) << c.name;
  }
}

base::Timetable sliced(base::Timetable plain, Duration slice, Duration first) {
  plain.slice = slice;
  plain.first_slice = first;
  return plain;
}

TEST(SwitchPlan, RestartsAtEachBoundaryIfThereAreSlices) {
  const auto alone = *make_plan(sliced(table({{0ms, 50ms, {kA}}}, 50ms), 50ms, 20ms), kStart);
  for (const Duration boundary : {20ms, 70ms, 120ms, 1000020ms}) {
    EXPECT_EQ(next_switch(alone, kStart + boundary - 1ns)->at, kStart + boundary);
    EXPECT_EQ(next_switch(alone, kStart + boundary)->at, kStart + boundary + 50ms);
    EXPECT_EQ(*next_switch(alone, kStart + boundary)->run, Ids{kA});
    EXPECT_TRUE(restarts_at(alone, kStart + boundary));
    EXPECT_FALSE(restarts_at(alone, kStart + boundary + 1ns));
  }
  EXPECT_FALSE(restarts_at(alone, kStart));
  EXPECT_FALSE(restarts_at(alone, kStart - 30ms));
  EXPECT_FALSE(restarts_at(*make_plan(kTwo, kStart), kStart + 100ms));
  const auto two = *make_plan(sliced(kTwo, 100ms, 100ms), kStart);
  EXPECT_EQ(*next_switch(two, kStart)->run, Ids{kB});
}

TEST(SwitchPlan, RefusesSegmentsThatDoNotCoverTheCycle) {
  const base::Timetable cases[] = {
      table({{0ms, 50ms, {kA}}}, 60ms),
      table({{0ms, 70ms, {kA}}}, 60ms),
      table({{10ms, 50ms, {kA}}}, 60ms),
      table({{0ms, 0ms, {kA}}, {0ms, 60ms, {kA}}}, 60ms),
      table({{0ms, -5ms, {kA}}}, -5ms),
      table({{0ms, 60ms, {kB, kA}}}, 60ms),
      table({{0ms, 60ms, {kA, kA}}}, 60ms),
      table({{0ms, Duration::max(), {kA}}, {Duration::max(), Duration::max(), {kB}}}, 60ms),
      table({}, 60ms),
      {Epoch{1}, kStart, 60ms, {{0ms, 60ms, {}}}, {kB, kA}},
      table(std::vector<base::Segment>(base::limits::kMaxSegmentsPerCycle + 1), 60ms),
      sliced(kTwo, 0ms, 10ms),
      sliced(kTwo, 10ms, 0ms),
      sliced(kTwo, 10ms, 20ms),
      sliced(kTwo, -10ms, -20ms),
  };
  for (const base::Timetable& t : cases) EXPECT_FALSE(make_plan(t, kStart));
}

}  // namespace
}  // namespace score::gang
