#include "scored/head/shares/use_book.hpp"

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

TEST(UseBook, UseHalvesInOneHalfLife) {
  UseBook book(rules(24h));
  book.charge({"physics", kAlice}, 800, kStart);
  EXPECT_NEAR(book.of({"physics", kAlice}, kStart + 24h), 400, 1e-6);
  EXPECT_NEAR(book.of({"physics", kAlice}, kStart + 72h), 100, 1e-6);
  const UseSum sum = book.charge({"physics", kAlice}, 10, kStart + 24h);
  EXPECT_EQ(sum, (UseSum{"physics", kAlice, 410'000, kStart + 24h}));
}

TEST(UseBook, KeepsEverythingWithoutAHalfLife) {
  UseBook book(rules(0s));
  book.charge({"physics", kAlice}, 800, kStart);
  EXPECT_DOUBLE_EQ(book.of({"physics", kAlice}, kStart + 24h * 1000), 800);
  EXPECT_FALSE(book.is_on());
}

TEST(UseBook, UsesTheClassicFairShareFormula) {
  UseBook book(rules(24h * 1000));
  book.charge({"physics", kAlice}, 60, kStart);
  book.charge({"physics", kBob}, 20, kStart);
  book.charge({"art", UserId(1)}, 20, kStart);
  const auto totals = book.totals(kStart);
  const auto physics = book.account("physics", totals);
  EXPECT_NEAR(physics.share, 0.75, 1e-9);
  EXPECT_NEAR(physics.used, 0.8, 1e-9);
  EXPECT_NEAR(physics.factor, std::exp2(-0.8 / 0.75), 1e-9);
  // The effective use is 0.6 + (0.8 - 0.6) / 2 of an entitlement of 0.375.
  EXPECT_NEAR(book.user({"physics", kAlice}, totals).factor, std::exp2(-0.7 / 0.375), 1e-9);
  EXPECT_NEAR(book.user({"physics", kBob}, totals).factor, std::exp2(-0.5 / 0.375), 1e-9);
  EXPECT_NEAR(book.account("art", totals).factor, std::exp2(-0.2 / 0.25), 1e-9);
}

TEST(UseBook, GroupAccountIsSharedByKnownUsers) {
  AccountRules some = rules(24h * 1000);
  some.accounts[1].users = {"@physicists"};
  UseBook book(some);
  book.charge({"physics", kAlice}, 60, kStart);
  EXPECT_DOUBLE_EQ(book.user({"physics", kAlice}, book.totals(kStart)).share, 1);
  EXPECT_TRUE(book.note_user({"physics", kBob}));
  EXPECT_DOUBLE_EQ(book.user({"physics", kAlice}, book.totals(kStart)).share, 0.5);
}

TEST(UseBook, WithoutAccountsUsersShareEqually) {
  AccountRules none;
  none.half_life = 24h;
  UseBook book(none);
  EXPECT_DOUBLE_EQ(book.user({"", kAlice}, book.totals(kStart)).factor, 1);
  book.charge({"", kAlice}, 50, kStart);
  book.charge({"", kBob}, 50, kStart);
  const auto totals = book.totals(kStart);
  EXPECT_NEAR(book.user({"", kAlice}, totals).factor, std::exp2(-1.5), 1e-9) << "E = 0.75 of 0.5";
  EXPECT_NEAR(book.account("", totals).factor, 0.5, 1e-9);
}

TEST(UseBook, IsTheSameAfterItWasStored) {
  std::mt19937 random(7);
  UseBook book(rules(1h));
  UseBook again(rules(1h));
  WallTime now = kStart;
  for (int i = 0; i < 1'000; ++i) {
    now += std::chrono::seconds(random() % 100);
    const UseBook::Key key{random() % 2 == 0 ? "art" : "physics",
                           UserId(static_cast<std::uint32_t>(random() % 5))};
    again.restore(book.charge(key, static_cast<double>(random() % 1'000), now), now);
  }
  for (const auto& key : book.keys()) {
    EXPECT_NEAR(again.of(key, now + 5h), book.of(key, now + 5h), 0.01);
  }
}

TEST(UseBook, SurvivesClockSetBackAndInvalidSums) {
  UseBook book(rules(1h));
  book.charge({"art", kAlice}, 100, kStart);
  EXPECT_DOUBLE_EQ(book.of({"art", kAlice}, kStart - 24h), 100);
  book.charge({"art", kAlice}, 1, kStart - 24h);
  EXPECT_DOUBLE_EQ(book.of({"art", kAlice}, kStart), 101);
  book.restore({"art", kBob, -5, kStart}, kStart);
  EXPECT_EQ(book.keys().size(), 1U);
  EXPECT_GT(book.charge({"art", kBob}, 1e300, kStart).core_ms, 0);
  book.charge({"art", kBob}, -1e300, kStart);
  EXPECT_GE(book.user({"art", kBob}, book.totals(kStart)).factor, 0);
}

TEST(UseBook, NewHalfLifeAppliesFromNowOn) {
  UseBook book(rules(0s));
  book.charge({"art", kAlice}, 100, kStart);
  book.set_rules(rules(1h), kStart + 48h);
  EXPECT_NEAR(book.of({"art", kAlice}, kStart + 49h), 50, 1e-9);
}

}  // namespace
}  // namespace score::head
