#include "base/async/clock.hpp"

#include "base/async/task_group.hpp"

#include <gtest/gtest.h>

namespace score {
namespace {

asio::awaitable<void> note_at(Clock& clock, TimePoint time, std::vector<Duration>& seen,
                              TimePoint start) {
  co_await clock.sleep_until(time);
  seen.push_back(clock.now() - start);
}

asio::awaitable<void> tick(Clock& clock, Duration period, int& ticks) {
  while (true) {
    co_await clock.sleep_for(period);
    ++ticks;
  }
}

class SimClockTest : public testing::Test {
 protected:
  ~SimClockTest() override {
    tasks.cancel();
    clock.run_for(0s);
  }

  asio::io_context io{1};
  SimClock clock{io};
  const TimePoint start = clock.now();
  std::vector<std::string> failures;
  TaskGroup tasks{io.get_executor(), [this](std::string_view name, const std::exception_ptr& e) {
                    failures.push_back(fmt::format("{}: {}", name, describe_exception(e)));
                  }};
};

TEST_F(SimClockTest, StandsStillUntilMoved) {
  clock.run_for(0s);
  EXPECT_EQ(clock.now(), start);
  clock.run_for(3s);
  EXPECT_EQ(clock.now(), start + 3s);
}

TEST_F(SimClockTest, WakesEverySleeperAtItsOwnTime) {
  std::vector<Duration> seen;
  for (const Duration at : {Duration(3s), Duration(1s), Duration(2s), Duration(1s)}) {
    tasks.spawn("note", note_at(clock, start + at, seen, start));
  }
  clock.run_for(2s);
  EXPECT_EQ(seen, (std::vector<Duration>{1s, 1s, 2s}));
  clock.run_for(1s);
  EXPECT_EQ(seen.size(), 4U);
  EXPECT_TRUE(tasks.empty());
}

TEST_F(SimClockTest, RunsAnHourOfTicksExactly) {
  int ticks = 0;
  tasks.spawn("tick", tick(clock, 1s, ticks));
  clock.run_for(1h);
  EXPECT_EQ(ticks, 3600);
}

TEST_F(SimClockTest, DoesNotWaitForThePast) {
  std::vector<Duration> seen;
  tasks.spawn("note", note_at(clock, start - 1s, seen, start));
  clock.run_for(0s);
  EXPECT_EQ(seen, (std::vector<Duration>{0s}));
}

TEST_F(SimClockTest, ForgetsACancelledSleeper) {
  std::vector<Duration> seen;
  tasks.spawn("note", note_at(clock, start + 1s, seen, start));
  clock.run_for(0s);
  EXPECT_EQ(clock.sleeper_count(), 1U);
  tasks.cancel();
  clock.run_for(0s);
  EXPECT_EQ(clock.sleeper_count(), 0U);
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(failures.size(), 1U);
}

TEST_F(SimClockTest, MovesSleeperBySleeper) {
  int ticks = 0;
  tasks.spawn("tick", tick(clock, 10s, ticks));
  EXPECT_TRUE(clock.run_next());
  EXPECT_EQ(clock.now(), start + 10s);
  EXPECT_EQ(ticks, 1);
  tasks.cancel();
  EXPECT_FALSE(clock.run_next());
}

TEST(SteadyClock, SleepsAtLeastAsLongAsAsked) {
  asio::io_context io{1};
  SteadyClock clock;
  const TimePoint wanted = clock.now() + 2ms;
  run(io, clock.sleep_until(wanted));
  EXPECT_GE(clock.now(), wanted);
}

}  // namespace
}  // namespace score
