// Tests which readings the judge requests, and what it makes of them. states_test.cpp tests its
// table, scored/node/switch/idle_watch_test.cpp its decisions over whole switches.
#include "gang/node/idle_judge.hpp"

#include <gtest/gtest.h>

#include <type_traits>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

constexpr WatchPace kPace{.background = 50ms, .slice = 100ms, .in_slice = 12ms, .middle = 50ms};
constexpr WatchPace kShared{.background = 50ms, .is_shared = true};

// The switcher's thread must not allocate, so a judge owns no memory.
static_assert(std::is_trivially_copyable_v<IdleJudge>);

// Has one task, the leader, and alternating slices of 100 ms.
struct Attempt {
  Duration used{0};
  Duration waited{0};
  IdleJudge judge;
  TimePoint now{1s};

  // Makes the readings that the judge requests. Returns the last one.
  IdleAction check(IdleEvent event, const WatchPace& pace = kPace) {
    IdleAction last = IdleAction::None;
    for (IdleAction next = judge.on(event, now, pace); next != IdleAction::None;) {
      last = next;
      if (next == IdleAction::ReadWaited) {
        next = judge.take_waited(waited);
      } else if (next == IdleAction::ReadUsage) {
        next = judge.take_usage(used, 0ns, false);
      } else {
        next = judge.take_leader(used);
      }
    }
    return last;
  }

  IdleAction pass_slice(double share) {
    check(IdleEvent::Continue);
    pass(share);
    const IdleAction last = check(IdleEvent::Stop);
    now += 100ms;
    return last;
  }

  void pass(double share, Duration time = 100ms) {
    now += time;
    used += std::chrono::duration_cast<Duration>(time * share);
  }

  void rest_in_background() {
    for (int i = 0; i < 4; ++i) pass_slice(0);
    check(IdleEvent::ToBackground);
    check(IdleEvent::Continue);
  }
};

TEST(IdleJudge, EveryPairFollowsTheTable) {
  for (const IdleStep& step : kIdleSteps) {
    // The shortest way to each state.
    Attempt attempt;
    const bool is_background = step.from != IdleState::Stopped && step.from != IdleState::Turn;
    if (is_background) attempt.check(IdleEvent::ToBackground);
    if (step.from != IdleState::Stopped && step.from != IdleState::BackgroundStopped) {
      attempt.check(IdleEvent::Continue);
    }
    if (step.from == IdleState::Held) {
      for (int i = 0; i < 2; ++i) {
        attempt.pass(1, 50ms);
        attempt.check(IdleEvent::Due, kShared);
      }
    }
    ASSERT_EQ(attempt.judge.state(), step.from) << to_string(step.from);
    if (step.event == IdleEvent::Use) continue;  // only the judge finds it
    attempt.pass(0);
    EXPECT_EQ(attempt.judge.on(step.event, attempt.now, kPace), step.action);
    EXPECT_EQ(attempt.judge.state(), step.to) << to_string(step.from) << to_string(step.event);
  }
}

TEST(IdleJudge, UnlistedPairChangesNothing) {
  Attempt attempt;
  for (const IdleEvent event : {IdleEvent::Stop, IdleEvent::Due, IdleEvent::ToTurns}) {
    EXPECT_EQ(attempt.check(event), IdleAction::None);
    EXPECT_EQ(attempt.judge.state(), IdleState::Stopped);
    EXPECT_FALSE(attempt.judge.next_check(kPace));
  }
}

TEST(IdleJudge, ReadsWaitingOnlyOfPartialUse) {
  Attempt attempt;
  EXPECT_EQ(attempt.pass_slice(1), IdleAction::ReadUsage) << "the first check is the baseline";
  EXPECT_EQ(attempt.pass_slice(1), IdleAction::ReadUsage);
  EXPECT_EQ(attempt.pass_slice(1), IdleAction::Probe) << "the leader goes on as before";
  EXPECT_EQ(attempt.pass_slice(0.5), IdleAction::ReadWaited);
}

TEST(IdleJudge, TrustsBusyLeaderForSevenSlices) {
  Attempt attempt;
  attempt.pass_slice(1);
  attempt.pass_slice(1);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(attempt.pass_slice(1), IdleAction::Probe) << i;
  EXPECT_EQ(attempt.pass_slice(1), IdleAction::ReadUsage);
}

TEST(IdleJudge, UseInBackgroundHoldsForTenPeriods) {
  Attempt attempt;
  attempt.rest_in_background();
  ASSERT_TRUE(attempt.judge.is_idle());
  attempt.pass(1, 50ms);
  EXPECT_LE(attempt.judge.next_check(kShared), attempt.now);
  attempt.check(IdleEvent::Due, kShared);
  EXPECT_TRUE(attempt.judge.is_held());
  EXPECT_FALSE(attempt.judge.is_idle());
  EXPECT_EQ(attempt.judge.next_check(kShared), attempt.now + 500ms);
  attempt.check(IdleEvent::Stop, kShared);
  attempt.now += 500ms;
  attempt.check(IdleEvent::Due, kShared);
  EXPECT_FALSE(attempt.judge.is_held());
}

TEST(IdleJudge, UseInBackgroundWithoutOthersDoesNotHold) {
  Attempt attempt;
  attempt.rest_in_background();
  attempt.pass(1, 50ms);
  attempt.check(IdleEvent::Due, WatchPace{});
  EXPECT_EQ(attempt.judge.state(), IdleState::Background);
}

TEST(IdleJudge, UnknownUsageEndsTheCheck) {
  Attempt attempt;
  attempt.used = -1ns;
  for (int i = 0; i < 4; ++i) EXPECT_EQ(attempt.pass_slice(0), IdleAction::ReadUsage);
  EXPECT_FALSE(attempt.judge.is_idle());
}

// Polls all the time, and all of that is believed.
struct Polling : Attempt {
  void check_polls(IdleEvent event, const WatchPace& pace = kPace) {
    judge.note_polls(true);
    for (IdleAction next = judge.on(event, now, pace); next != IdleAction::None;) {
      next = next == IdleAction::ReadUsage ? judge.take_usage(used, used, true)
                                           : judge.take_leader(0ns);
    }
  }

  void go_to_background() {
    for (int i = 0; i < 4; ++i) {
      check_polls(IdleEvent::Continue);
      pass(1);
      check_polls(IdleEvent::Stop);
      now += 100ms;
    }
    check_polls(IdleEvent::ToBackground);
    check_polls(IdleEvent::Continue);
  }
};

TEST(IdleJudge, PollingAttemptRunsByGlimpses) {
  Polling attempt;
  attempt.go_to_background();
  ASSERT_TRUE(attempt.judge.is_idle());
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(attempt.judge.state(), IdleState::Background);
    ASSERT_EQ(attempt.judge.next_check(kShared), attempt.now + 4ms);
    attempt.pass(1, 4ms);
    attempt.check_polls(IdleEvent::Due, kShared);
    ASSERT_TRUE(attempt.judge.is_held());
    ASSERT_TRUE(attempt.judge.is_idle());
    ASSERT_EQ(attempt.judge.next_check(kShared), attempt.now + 50ms);
    attempt.now += 50ms;
    attempt.check_polls(IdleEvent::Due, kShared);
    attempt.check_polls(IdleEvent::Continue, kShared);
  }
}

TEST(IdleJudge, ProgressInGlimpseEndsIdleness) {
  Polling attempt;
  attempt.go_to_background();
  attempt.pass(1, 4ms);
  attempt.judge.note_polls(false);
  attempt.check(IdleEvent::Due, kShared);
  EXPECT_FALSE(attempt.judge.is_idle());
}

}  // namespace
}  // namespace score::gang
