#include "gang/job/scheduled_time.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{10s};
constexpr RowId kFirst{1};
constexpr RowId kSecond{2};

// Lets two rows take turns of 100 ms from kStart on, the first one first.
CycleClock two_rows() {
  CycleClock clock;
  Cycle cycle;
  cycle.start = kStart;
  cycle.quantum = 100ms;
  cycle.rows = {kFirst, kSecond};
  cycle.order = {0, 1};
  clock.append(cycle);
  return clock;
}

TEST(ScheduledTime, CountsTheSlicesOfItsRows) {
  const CycleClock cycles = two_rows();
  ScheduledTime time;
  EXPECT_TRUE(time.run_in({kSecond}, kStart, cycles));
  EXPECT_FALSE(time.run_in({kSecond}, kStart + 1s, cycles)) << "no change";
  EXPECT_EQ(time.at(kStart + 100ms, cycles), 0ms);
  EXPECT_EQ(time.at(kStart + 130ms, cycles), 30ms);
  EXPECT_EQ(time.at(kStart + 1s, cycles), 500ms);
}

TEST(ScheduledTime, ChangeCountsFromItsStart) {
  const CycleClock cycles = two_rows();
  ScheduledTime time;
  time.run_in({kFirst}, kStart, cycles);
  time.run_in({kFirst, kSecond}, kStart + 1s, cycles);
  EXPECT_EQ(time.at(kStart + 200ms, cycles), 100ms) << "by the rows before";
  EXPECT_EQ(time.at(kStart + 2s, cycles), 1500ms);
  EXPECT_EQ(time.rows().size(), 2U);
}

TEST(ScheduledTime, StoppedJobAccruesNothing) {
  const CycleClock cycles = two_rows();
  ScheduledTime time;
  time.run_in({kFirst}, kStart, cycles);
  time.stop(kStart + 50ms, cycles);
  EXPECT_EQ(time.at(kStart + 9s, cycles), 50ms);
  EXPECT_TRUE(time.rows().empty());
}

TEST(ScheduledTime, ComputesWhenAnAmountIsReached) {
  const CycleClock cycles = two_rows();
  ScheduledTime time;
  EXPECT_EQ(time.time_to_run(42ms, kStart, cycles), 42ms) << "in no row";
  time.run_in({kSecond}, kStart, cycles);
  EXPECT_EQ(time.time_to_run(30ms, kStart, cycles), 130ms);
  EXPECT_EQ(time.time_to_run(130ms, kStart, cycles), 330ms);
}

TEST(ScheduledTime, ContinuesFromStoredTime) {
  const CycleClock cycles = two_rows();
  ScheduledTime time;
  time.restore(kStart, 5s);
  time.run_in({kFirst}, kStart + 200ms, cycles);
  EXPECT_EQ(time.at(kStart + 400ms, cycles), 5100ms);
}

}  // namespace
}  // namespace score::gang
