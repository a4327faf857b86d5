#include "gang/node/freeze_watch.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

constexpr AttemptId kFirst{1}, kSecond{2}, kThird{3};
constexpr TimePoint kBegin{1h};

// The first one runs for 1 s, nothing for 2 s, the second for 3 s; the third never runs.
SwitchPlan plan_of_three() {
  return {Epoch{1},
          kBegin,
          6s,
          {{0s, 1s, {kFirst}}, {1s, 2s, {}}, {3s, 3s, {kSecond}}},
          {kFirst, kSecond, kThird}};
}

class FreezeWatchTest : public testing::Test {
 protected:
  // Checks every second, until the attempt is overdue; returns how long that took.
  std::optional<Duration> overdue_after(AttemptId attempt, const SwitchPlan& plan,
                                        Duration ran_per_second = 0s) {
    const std::vector<FreezeWatch::Stopped> stopped(1, {attempt, 0s});
    auto now_stopped = stopped;
    for (Duration time{0}; time < 60s; time += 1s) {
      const auto overdue = watch_.check(now_stopped, plan, plan.start + time);
      if (!overdue.empty()) return time;
      now_stopped[0].ran += ran_per_second;
    }
    return std::nullopt;
  }

  FreezeWatch watch_;
};

TEST_F(FreezeWatchTest, LongestPauseSpansTheEndOfTheCycle) {
  const SwitchPlan plan = plan_of_three();
  EXPECT_EQ(longest_pause(plan, kFirst), 5s);
  EXPECT_EQ(longest_pause(plan, kSecond), 3s);
  EXPECT_EQ(longest_pause(plan, kThird), std::nullopt);
  EXPECT_EQ(longest_pause(plan, AttemptId{4}), 0s) << "it is not managed";
  EXPECT_EQ(longest_pause(SwitchPlan{}, kFirst), 0s);
}

TEST_F(FreezeWatchTest, AttemptIsOverdueAfterItsLongestPause) {
  EXPECT_EQ(overdue_after(kFirst, plan_of_three()), 8s);
}

TEST_F(FreezeWatchTest, UnmanagedAttemptIsOverdueAfterGrace) {
  EXPECT_EQ(overdue_after(AttemptId{4}, plan_of_three()), 3s);
}

TEST_F(FreezeWatchTest, AttemptThatRunsInBetweenIsNotOverdue) {
  EXPECT_EQ(overdue_after(kFirst, plan_of_three(), 1us), std::nullopt);
}

TEST_F(FreezeWatchTest, SuspendedAttemptIsNotOverdue) {
  EXPECT_EQ(overdue_after(kThird, plan_of_three()), std::nullopt);
}

TEST_F(FreezeWatchTest, HeldBackgroundAttemptMustRunAtTimes) {
  SwitchPlan plan = plan_of_three();
  plan.managed = {kFirst, kSecond};
  plan.background = {kThird};
  EXPECT_EQ(overdue_after(kThird, plan, 1us), std::nullopt);
  watch_ = {};
  EXPECT_EQ(overdue_after(kThird, plan), 8s);
}

TEST_F(FreezeWatchTest, TimeUnderEarlierPlanDoesNotCount) {
  EXPECT_EQ(overdue_after(kThird, plan_of_three()), std::nullopt);
  SwitchPlan resumed = plan_of_three();
  resumed.start += 60s;
  resumed.segments[1].jobs = {kThird};
  EXPECT_EQ(overdue_after(kThird, resumed), 7s);
}

TEST_F(FreezeWatchTest, AttemptWithoutSegmentIsLeftOut) {
  const SwitchPlan plan = plan_of_three();
  EXPECT_TRUE(is_left_out(plan, kThird, kBegin));
  EXPECT_FALSE(is_left_out(plan, kThird, kBegin - 1ns));
  EXPECT_FALSE(is_left_out(plan, kFirst, kBegin + 2s)) << "it only waits for its turn";
  EXPECT_FALSE(is_left_out(plan, AttemptId{4}, kBegin)) << "it is not managed";
}

}  // namespace
}  // namespace score::gang
