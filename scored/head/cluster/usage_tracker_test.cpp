#include "scored/head/cluster/usage_tracker.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace score::head {
namespace {

constexpr UserId kAlice(1000);
constexpr UserId kBob(1001);
constexpr WallTime kStart{std::chrono::hours(24 * 365 * 50)};

AccountRules rules(Duration half_life) {
  AccountRules out;
  out.half_life = half_life;
  out.accounts = {{"art", false, {"carol"}, 1, 0, {}},
                  {"physics", false, {"alice", "bob"}, 3, 0, {}}};
  return out;
}

TEST(UsageTracker, UseHalvesInOneHalfLife) {
  UsageTracker tracker(rules(24h));
  tracker.charge({"physics", kAlice}, 800, kStart);
  EXPECT_NEAR(tracker.of({"physics", kAlice}, kStart + 24h), 400, 1e-6);
  EXPECT_NEAR(tracker.of({"physics", kAlice}, kStart + 72h), 100, 1e-6);
  const UseSum sum = tracker.charge({"physics", kAlice}, 10, kStart + 24h);
  EXPECT_EQ(sum, (UseSum{"physics", kAlice, 410'000, kStart + 24h}));
}

TEST(UsageTracker, KeepsEverythingWithoutAHalfLife) {
  UsageTracker tracker(rules(0s));
  tracker.charge({"physics", kAlice}, 800, kStart);
  EXPECT_DOUBLE_EQ(tracker.of({"physics", kAlice}, kStart + 24h * 1000), 800);
  EXPECT_FALSE(tracker.is_on());
}

TEST(UsageTracker, UsesTheClassicFairShareFormula) {
  UsageTracker tracker(rules(24h * 1000));
  tracker.charge({"physics", kAlice}, 60, kStart);
  tracker.charge({"physics", kBob}, 20, kStart);
  tracker.charge({"art", UserId(1)}, 20, kStart);
  const auto totals = tracker.totals(kStart);
  const auto physics = tracker.account("physics", totals);
  EXPECT_NEAR(physics.share, 0.75, 1e-9);
  EXPECT_NEAR(physics.used, 0.8, 1e-9);
  EXPECT_NEAR(physics.factor, std::exp2(-0.8 / 0.75), 1e-9);
  // The effective use is 0.6 + (0.8 - 0.6) / 2 of an entitlement of 0.375.
  EXPECT_NEAR(tracker.user({"physics", kAlice}, totals).factor, std::exp2(-0.7 / 0.375), 1e-9);
  EXPECT_NEAR(tracker.user({"physics", kBob}, totals).factor, std::exp2(-0.5 / 0.375), 1e-9);
  EXPECT_NEAR(tracker.account("art", totals).factor, std::exp2(-0.2 / 0.25), 1e-9);
}

TEST(UsageTracker, GroupAccountIsSharedByKnownUsers) {
  AccountRules some = rules(24h * 1000);
  some.accounts[1].users = {"@physicists"};
  UsageTracker tracker(some);
  tracker.charge({"physics", kAlice}, 60, kStart);
  EXPECT_DOUBLE_EQ(tracker.user({"physics", kAlice}, tracker.totals(kStart)).share, 1);
  EXPECT_TRUE(tracker.note_user({"physics", kBob}));
  EXPECT_DOUBLE_EQ(tracker.user({"physics", kAlice}, tracker.totals(kStart)).share, 0.5);
}

TEST(UsageTracker, WithoutAccountsUsersShareEqually) {
  AccountRules none;
  none.half_life = 24h;
  UsageTracker tracker(none);
  EXPECT_DOUBLE_EQ(tracker.user({"", kAlice}, tracker.totals(kStart)).factor, 1);
  tracker.charge({"", kAlice}, 50, kStart);
  tracker.charge({"", kBob}, 50, kStart);
  const auto totals = tracker.totals(kStart);
  EXPECT_NEAR(tracker.user({"", kAlice}, totals).factor, std::exp2(-1.5), 1e-9)
      << "E = 0.75 of 0.5";
  EXPECT_NEAR(tracker.account("", totals).factor, 0.5, 1e-9);
}

TEST(UsageTracker, IsTheSameAfterItWasStored) {
  std::mt19937 random(7);
  UsageTracker tracker(rules(1h));
  UsageTracker again(rules(1h));
  WallTime now = kStart;
  for (int i = 0; i < 1'000; ++i) {
    now += std::chrono::seconds(random() % 100);
    const UsageTracker::Key key{random() % 2 == 0 ? "art" : "physics",
                                UserId(static_cast<std::uint32_t>(random() % 5))};
    again.restore(tracker.charge(key, static_cast<double>(random() % 1'000), now), now);
  }
  for (const auto& key : tracker.keys()) {
    EXPECT_NEAR(again.of(key, now + 5h), tracker.of(key, now + 5h), 0.01);
  }
}

TEST(UsageTracker, SurvivesClockSetBackAndInvalidSums) {
  UsageTracker tracker(rules(1h));
  tracker.charge({"art", kAlice}, 100, kStart);
  EXPECT_DOUBLE_EQ(tracker.of({"art", kAlice}, kStart - 24h), 100);
  tracker.charge({"art", kAlice}, 1, kStart - 24h);
  EXPECT_DOUBLE_EQ(tracker.of({"art", kAlice}, kStart), 101);
  tracker.restore({"art", kBob, -5, kStart}, kStart);
  EXPECT_EQ(tracker.keys().size(), 1U);
  EXPECT_GT(tracker.charge({"art", kBob}, 1e300, kStart).core_ms, 0);
  tracker.charge({"art", kBob}, -1e300, kStart);
  EXPECT_GE(tracker.user({"art", kBob}, tracker.totals(kStart)).factor, 0);
}

TEST(UsageTracker, NewHalfLifeAppliesFromNowOn) {
  UsageTracker tracker(rules(0s));
  tracker.charge({"art", kAlice}, 100, kStart);
  tracker.set_rules(rules(1h), kStart + 48h);
  EXPECT_NEAR(tracker.of({"art", kAlice}, kStart + 49h), 50, 1e-9);
}

}  // namespace
}  // namespace score::head
