#include "gang/job/idleness.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using base::TimePoint;
using namespace std::chrono_literals;

constexpr IdleLimits kLimits{1s, 3s};
constexpr IdleLimits kUnheard{1s, 3s, false};
constexpr TimePoint kStart{10s};

struct TwoShares {
  TwoShares() {
    members.ask_all(2);
    idleness.begin(2);
  }

  JobActivity report(const base::Activity& first, const base::Activity& second, TimePoint at) {
    idleness.report(0, first);
    idleness.report(1, second);
    return idleness.judge(members, at, kLimits);
  }

  Members members;
  Idleness idleness;
};

TEST(Idleness, JobIsIdleWhenAllItsSharesAre) {
  TwoShares job;
  EXPECT_EQ(job.report({.idle = true}, {}, kStart), JobActivity::Busy);
  EXPECT_EQ(job.report({.idle = true}, {.idle = true}, kStart), JobActivity::Idle);
  EXPECT_FALSE(job.idleness.judge_again());
  EXPECT_EQ(job.report({.idle = true}, {}, kStart), JobActivity::Busy);
}

TEST(Idleness, MessagesInFlightDelayIdleness) {
  TwoShares job;
  const base::Activity sent{.idle = true, .sent = 5};
  EXPECT_EQ(job.report(sent, {.idle = true, .received = 4}, kStart), JobActivity::Busy);
  EXPECT_EQ(job.idleness.judge_again(), kStart + 1s);
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 1s, kLimits), JobActivity::Idle);
}

TEST(Idleness, EndedShareDoesNotCount) {
  TwoShares job;
  job.members.gone(1);
  EXPECT_EQ(job.report({.idle = true}, {}, kStart), JobActivity::Busy) << "what it sent is unknown";
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 1s, kLimits), JobActivity::Idle);
}

TEST(Idleness, JobIsBusyUntilItHasBegunEverywhere) {
  TwoShares job;
  job.members.start(1, 0s);
  EXPECT_EQ(job.report({.idle = true}, {.idle = true}, kStart), JobActivity::Busy);
}

TEST(Idleness, JobWaitingOnlyForMessagesBecomesDeadlocked) {
  TwoShares job;
  const base::Activity waits{.idle = true, .waits = true};
  EXPECT_EQ(job.report(waits, waits, kStart), JobActivity::Idle);
  EXPECT_EQ(job.idleness.judge_again(), kStart + 3s);
  EXPECT_EQ(job.report(waits, {}, kStart + 2s), JobActivity::Busy);
  EXPECT_EQ(job.report(waits, waits, kStart + 3s), JobActivity::Idle) << "counted anew";
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 6s, kLimits), JobActivity::Deadlocked);
  job.idleness.reset();
  EXPECT_EQ(job.idleness.activity(), JobActivity::Busy);
}

TEST(Idleness, MessageInFlightPreventsDeadlock) {
  TwoShares job;
  const base::Activity sent{.idle = true, .waits = true, .sent = 5, .received = 1};
  const base::Activity missing{.idle = true, .waits = true, .sent = 1, .received = 4};
  job.report(sent, missing, kStart);
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 1h, kLimits), JobActivity::Idle);
  EXPECT_FALSE(job.idleness.judge_again()) << "only a report can change that";
}

TEST(Idleness, ChangedCountersRestartDeadlockTime) {
  TwoShares job;
  const auto waits = [](std::uint64_t count) {
    return base::Activity{.idle = true, .waits = true, .sent = count, .received = count};
  };
  job.report(waits(1), waits(1), kStart);
  EXPECT_EQ(job.report(waits(1), waits(2), kStart + 2s), JobActivity::Idle);
  EXPECT_EQ(job.report(waits(1), waits(2), kStart + 4s), JobActivity::Idle);
  EXPECT_EQ(job.report(waits(1), waits(2), kStart + 5s), JobActivity::Deadlocked);
  EXPECT_EQ(job.report(waits(9), waits(2), kStart + 6s), JobActivity::Idle);
}

TEST(Idleness, DeadlockNeedsSignsOfLifeFromAllNodes) {
  TwoShares job;
  const base::Activity waits{.idle = true, .waits = true};
  job.report(waits, waits, kStart);
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 4s, kUnheard), JobActivity::Idle);
  EXPECT_EQ(job.idleness.judge_again(), kStart + 7s);
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 7s, kLimits), JobActivity::Deadlocked);
}

TEST(Idleness, JobWithEndedShareCanBeDeadlocked) {
  TwoShares job;
  job.members.gone(1);
  const base::Activity waits{.idle = true, .waits = true, .sent = 3};
  job.report(waits, {}, kStart);
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 3s, kLimits), JobActivity::Deadlocked);
}

constexpr IdleLimits kConfirming{1s, 3s, true, true};

TEST(Idleness, DeadlockIsConfirmedFirst) {
  TwoShares job;
  const base::Activity waits{.idle = true, .waits = true};
  job.report(waits, waits, kStart);
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 3s, kConfirming), JobActivity::Idle);
  const std::uint32_t suspicion = job.idleness.suspicion();
  ASSERT_NE(suspicion, 0U);
  job.idleness.judge(job.members, kStart + 4s, kConfirming);
  EXPECT_EQ(job.idleness.suspicion(), suspicion) << "it is one suspicion";
  job.idleness.confirm(suspicion + 1, true, kStart + 4s);
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 4s, kConfirming), JobActivity::Idle);
  job.idleness.confirm(suspicion, true, kStart + 5s);
  EXPECT_EQ(job.idleness.suspicion(), 0U);
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 5s, kConfirming), JobActivity::Deadlocked);
}

TEST(Idleness, RejectedSuspicionDoublesTime) {
  TwoShares job;
  const base::Activity waits{.idle = true, .waits = true};
  job.report(waits, waits, kStart);
  job.idleness.judge(job.members, kStart + 3s, kConfirming);
  job.idleness.confirm(job.idleness.suspicion(), false, kStart + 3s);
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 8s, kConfirming), JobActivity::Idle);
  EXPECT_EQ(job.idleness.suspicion(), 0U);
  EXPECT_EQ(job.idleness.judge_again(), kStart + 9s);
  job.idleness.judge(job.members, kStart + 9s, kConfirming);
  EXPECT_NE(job.idleness.suspicion(), 0U);
}

TEST(Idleness, ProgressEndsSuspicion) {
  TwoShares job;
  const base::Activity waits{.idle = true, .waits = true};
  job.report(waits, waits, kStart);
  job.idleness.judge(job.members, kStart + 3s, kConfirming);
  const std::uint32_t suspicion = job.idleness.suspicion();
  job.report({.idle = true}, waits, kStart + 3s);
  EXPECT_EQ(job.idleness.suspicion(), 0U);
  job.idleness.confirm(suspicion, true, kStart + 3s);
  job.report(waits, waits, kStart + 4s);
  EXPECT_EQ(job.idleness.judge(job.members, kStart + 7s, kConfirming), JobActivity::Idle);
}

}  // namespace
}  // namespace score::gang
