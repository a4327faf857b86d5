#include "scored/head/cluster/limit_gate.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

constexpr UserId kAlice(1000);
constexpr UserId kBob(1001);
constexpr UserId kOperator(1);
constexpr WallTime kStart{std::chrono::hours(24 * 365 * 50)};
const Bytes kGiB(1024 * limits::kMiB);

gang::Job job(std::uint64_t id, UserId user, std::size_t nodes, Bytes memory = Bytes(0)) {
  gang::Job out;
  out.id = JobId(id);
  out.user = user;
  out.request.account = "physics";
  out.shape.nodes = static_cast<std::uint32_t>(nodes);
  out.shape.memory = memory;
  for (std::size_t i = 0; i < nodes; ++i) {
    out.cells.nodes.push_back(static_cast<gang::NodeIndex>(i));
  }
  return out;
}

struct Gate {
  AccountRules rules;
  UsageTracker tracker{rules};
  PartitionRules partitions;
  LimitGate gate{rules, partitions, tracker, [](UserId user) { return user != kOperator; }};

  Gate() { rules.accounts = {{"physics", true, {}, 1, 0, {}}}; }

  RunningLimits& account() { return rules.accounts[0].limits; }

  [[nodiscard]] std::string why(const gang::Job& one) const {
    std::string text = gate.why_closed(one, one.cells.nodes.size());
    EXPECT_EQ(text.empty(), gate.is_open(one, one.cells.nodes.size())) << text;
    return text;
  }
};

TEST(LimitGate, IsOpenWithoutLimits) {
  Gate g;
  for (std::uint64_t i = 0; i < 100; ++i) g.gate.placed(job(i, kAlice, 100));
  EXPECT_EQ(g.why(job(100, kAlice, 100)), "");
  EXPECT_EQ(g.gate.rank(job(100, kAlice, 100)), 0);
  EXPECT_EQ(g.gate.boost(job(100, kAlice, 100)), 1U);
}

TEST(LimitGate, NamesTheLimitAndItsValue) {
  Gate g;
  g.rules.per_user.max_running_jobs = 2;
  g.account().max_nodes = 4;
  g.account().max_memory = Bytes(8 * kGiB.value());
  g.gate.placed(job(1, kAlice, 3, kGiB));
  EXPECT_EQ(g.why(job(2, kBob, 2)),
            "accounts.physics.max_nodes is 4: account physics uses 3, the job needs 2");
  EXPECT_NE(g.why(job(2, kBob, 1, Bytes(6 * kGiB.value()))).find("max_memory"), std::string::npos);
  EXPECT_EQ(g.why(job(2, kAlice, 1)), "");
  g.gate.placed(job(2, kAlice, 1));
  g.account() = {};
  EXPECT_EQ(g.why(job(3, kAlice, 1)), "limits.max_running_jobs is 2: its user has 2 running");
  EXPECT_EQ(g.why(job(3, kBob, 1)), "");
}

TEST(LimitGate, PartitionLimitsHoldForEachUserThere) {
  Gate g;
  PartitionRule rule;
  rule.name = "short";
  rule.limits.max_running_jobs = 1;
  g.partitions.all = {rule};
  gang::Job first = job(1, kAlice, 1);
  gang::Job second = job(2, kAlice, 1);
  gang::Job other = job(3, kBob, 1);
  for (gang::Job* one : {&first, &second, &other}) one->request.partition = "short";
  g.gate.placed(first);
  EXPECT_EQ(g.why(second), "partitions.short.max_running_jobs is 1: its user has 1 running");
  EXPECT_EQ(g.why(other), "");
  EXPECT_EQ(g.why(job(4, kAlice, 1)), "") << "it is in no partition";
  EXPECT_EQ(g.gate.of_user(kAlice).jobs, 1U);
  second.user = kOperator;
  g.gate.placed(second);
  EXPECT_EQ(g.why(second), "") << "operators are not limited";
  g.gate.unplaced(first);
  EXPECT_EQ(g.gate.of_partition("short", kAlice), LimitGate::Count());
}

TEST(LimitGate, EndedJobMakesRoom) {
  Gate g;
  g.account().max_running_jobs = 1;
  const auto first = job(1, kAlice, 2, kGiB);
  g.gate.placed(first);
  g.gate.placed(first);  // counted once
  EXPECT_FALSE(g.gate.is_open(job(2, kBob, 1), 1));
  g.gate.unplaced(first);
  g.gate.unplaced(first);
  EXPECT_TRUE(g.gate.is_open(job(2, kBob, 1), 1));
  EXPECT_EQ(g.gate.of_account("physics"), LimitGate::Count());
}

TEST(LimitGate, OnlyAccountLimitsApplyToOperators) {
  Gate g;
  g.rules.per_user.max_nodes = 1;
  EXPECT_FALSE(g.gate.is_open(job(1, kAlice, 2), 2));
  EXPECT_TRUE(g.gate.is_open(job(1, kOperator, 2), 2));
  g.account().max_nodes = 1;
  EXPECT_FALSE(g.gate.is_open(job(1, kOperator, 2), 2));
}

TEST(LimitGate, HourLimitsUseTheDecayedUse) {
  Gate g;
  g.account().max_scheduled_hours = 10;
  g.rules.half_life = 24h;
  g.tracker.set_rules(g.rules, kStart);
  g.tracker.charge({"physics", kAlice}, 16 * 3600, kStart);
  EXPECT_TRUE(g.gate.refresh(kStart));
  EXPECT_EQ(g.why(job(1, kBob, 1)),
            "accounts.physics.max_scheduled_hours is 10: account physics has used 16.0 core hours");
  EXPECT_TRUE(g.gate.refresh(kStart + 24h)) << "8 hours are left of it";
  EXPECT_EQ(g.why(job(1, kBob, 1)), "");
  EXPECT_FALSE(g.gate.refresh(kStart + 25h)) << "nothing has changed";
}

TEST(LimitGate, RanksByFactorAndReportsOnlyChanges) {
  Gate g;
  g.rules.half_life = 24h;
  g.tracker.set_rules(g.rules, kStart);
  g.tracker.charge({"physics", kAlice}, 100, kStart);
  g.tracker.charge({"physics", kBob}, 10, kStart);
  EXPECT_TRUE(g.gate.refresh(kStart));
  EXPECT_LT(g.gate.rank(job(1, kBob, 1)), g.gate.rank(job(2, kAlice, 1)));
  EXPECT_EQ(g.gate.rank(job(3, UserId(77), 1)), 0) << "a user who is new is first";
  EXPECT_GE(g.gate.boost(job(1, kBob, 1)), g.gate.boost(job(2, kAlice, 1)));
  EXPECT_FALSE(g.gate.refresh(kStart + 24h)) << "both decay alike";
  g.tracker.charge({"physics", kBob}, 1'000, kStart + 24h);
  EXPECT_TRUE(g.gate.refresh(kStart + 24h));
  EXPECT_GT(g.gate.rank(job(1, kBob, 1)), g.gate.rank(job(2, kAlice, 1)));
}

TEST(LimitGate, WeightsStayIfSharesDoNotAffectThem) {
  Gate g;
  g.rules.half_life = 24h;
  g.rules.shares_weights = false;
  g.tracker.set_rules(g.rules, kStart);
  g.tracker.charge({"physics", kAlice}, 100, kStart);
  g.gate.refresh(kStart);
  EXPECT_EQ(g.gate.boost(job(1, kAlice, 1)), 1U);
  EXPECT_EQ(g.gate.boost(job(1, kBob, 1)), 1U);
}

}  // namespace
}  // namespace score::head
