#include "scored/head/config/accounts.hpp"

#include "scored/head/config/config.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace score::head {
namespace {

const std::string kHead = "[head]\nnodes = \"n[0-1]\"\n";

AccountRules rules_of(const std::string& text) {
  const auto config = parse_config(kHead + text, "scored.toml");
  EXPECT_TRUE(config) << config.error().message();
  return config ? config->accounts : AccountRules();
}

const AccountRules& some_rules() {
  static const AccountRules rules = rules_of(R"(
    [accounts.physics]
    users = ["alice", "bob"]
    shares = 3
    max_jobs = 2
    max_running_jobs = 4
    max_nodes = 8
    max_memory = "16G"
    max_scheduled_hours = 100
    [accounts.biology]
    users = ["bob", "1003"]
    [fair_share]
    half_life = "168h"
    [limits]
    max_nodes = 4
  )");
  return rules;
}

TEST(Accounts, AreReadWithTheirLimits) {
  const AccountRules& rules = some_rules();
  ASSERT_EQ(rules.accounts.size(), 2U);
  const Account& physics = *rules.find("physics");
  EXPECT_EQ(physics.shares, 3U);
  EXPECT_EQ(physics.max_jobs, 2U);
  EXPECT_EQ(physics.limits, (RunningLimits{4, 8, Bytes(16 * 1024 * limits::kMiB), 100}));
  EXPECT_EQ(rules.half_life, 7 * 24h);
  EXPECT_EQ(rules.per_user.max_nodes, 4U);
  EXPECT_EQ(rules_of(""), AccountRules());
}

TEST(Accounts, BadValueIsReportedWithFileAndKey) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"[accounts.a]\nshares = 0", "shares"},
      {"[accounts.a]\nusers = \"alice\"", "users"},
      {"[accounts.a]\nusers = [\"x\", \"x\"]", "'x' is named twice"},
      {"[accounts.a]\nusers = [\"\"]", "empty"},
      {"[accounts.a]\nusers = [\"@\"]", "empty"},
      {"[accounts.\"a b\"]\nshares = 1", "letters"},
      {"[accounts.a]\nmax_node = 3", "max_node"},
      {"[accounts.a]\nmax_nodes = -1", "max_nodes"},
      {"[accounts.a]\nmax_memory = \"big\"", "max_memory"},
      {"[accounts]\na = 3", "a"},
      {"[fair_share]\nhalf_life = 7", "half_life"},
      {"[fair_share]\nhalf_life = \"1ms\"", "half_life"},
      {"[fair_share]\ndefault_account = \"none\"", "[accounts.none]"},
      {"[limits]\nmax_scheduled_hours = 0", "max_scheduled_hours"},
  };
  for (const auto& [text, word] : bad) {
    const auto config = parse_config(kHead + text, "scored.toml");
    ASSERT_FALSE(config) << text;
    const std::string line = config.error().context();
    EXPECT_TRUE(line.starts_with("scored.toml:")) << line;
    EXPECT_NE(line.find(word), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
}

std::string chosen(const AccountRules& rules, const Submitter& who, const std::string& wanted) {
  const auto account = choose_account(rules, who, wanted);
  return account ? "= " + *account : account.error().context();
}

TEST(Accounts, OnlyAccountOfAUserIsTheDefault) {
  const AccountRules& rules = some_rules();
  const Submitter alice{"alice", UserId(1000)};
  EXPECT_EQ(chosen(rules, alice, ""), "= physics");
  EXPECT_EQ(chosen(rules, alice, "physics"), "= physics");
  EXPECT_EQ(chosen(rules, {"1003", UserId(1003)}, ""), "= biology") << "by number";
  EXPECT_EQ(chosen(rules, alice, "biology"),
            "user alice is not in account biology; yours: physics");
  EXPECT_EQ(chosen(rules, alice, "chemistry"), "no account chemistry; yours: physics");
}

TEST(Accounts, UserWithSeveralAccountsMustChooseOne) {
  AccountRules rules = some_rules();
  const Submitter bob{"bob", UserId(1001)};
  EXPECT_EQ(chosen(rules, bob, ""),
            "user bob is in several accounts: choose one with --account (yours: biology, physics)");
  rules.default_account = "physics";
  EXPECT_EQ(chosen(rules, bob, ""), "= physics");
  EXPECT_EQ(chosen(rules, {"1003", UserId(1003)}, ""), "= biology") << "not in the default account";
}

TEST(Accounts, UserWithoutAccountIsRefusedUnlessOperator) {
  const AccountRules& rules = some_rules();
  EXPECT_NE(chosen(rules, {"eve", UserId(9)}, "").find("in no account"), std::string::npos);
  EXPECT_EQ(chosen(rules, {"root", UserId(0), false}, ""), "= ");
  EXPECT_EQ(chosen(rules, {"root", UserId(0), false}, "physics"), "= physics");
  EXPECT_EQ(chosen(AccountRules(), {"eve", UserId(9)}, ""), "= ");
  EXPECT_NE(chosen(AccountRules(), {"eve", UserId(9)}, "x").find("no accounts"), std::string::npos);
}

TEST(Accounts, GroupMemberMayUseTheAccount) {
  const AccountRules rules = rules_of(R"(
    [accounts.course]
    users = ["@students", "@staff", "carol"]
    [accounts.staff]
    users = ["@staff"]
    [accounts.at]
    users = ["students"]
  )");
  EXPECT_EQ(rules.groups(), (std::vector<std::string>{"staff", "students"}));
  const Submitter dave{"dave", UserId(1004), true, {"students"}};
  EXPECT_EQ(chosen(rules, dave, ""), "= course");
  EXPECT_EQ(chosen(rules, dave, "staff"), "user dave is not in account staff; yours: course");
  EXPECT_EQ(chosen(rules, {"carol", UserId(1005)}, ""), "= course");
  EXPECT_NE(chosen(rules, {"@staff", UserId(1006)}, "").find("in no account"), std::string::npos)
      << "a user with the name of the entry is no member";
  EXPECT_EQ(chosen(rules, {"erin", UserId(1007), true, {"staff", "students"}}, ""),
            "user erin is in several accounts: choose one with --account (yours: course, staff)");
}

TEST(Accounts, JobThatCanNeverFitIsRefused) {
  const AccountRules& rules = some_rules();
  ResourceRequest request;
  request.account = "physics";
  request.nodes = 5;
  const Submitter alice{"alice", UserId(1000)};
  EXPECT_EQ(check_alone(rules, alice, request).error().context(),
            "requested 5 nodes; limits.max_nodes of the head is 4");
  EXPECT_TRUE(check_alone(rules, {"op", UserId(2), false}, request));
  request.nodes = 9;
  EXPECT_NE(check_alone(rules, {"op", UserId(2), false}, request)
                .error()
                .context()
                .find("accounts.physics.max_nodes"),
            std::string::npos);
  request.nodes = 4;
  request.memory_per_node = Bytes(UINT64_MAX / 2);
  EXPECT_NE(check_alone(rules, alice, request).error().context().find("max_memory"),
            std::string::npos);
  EXPECT_TRUE(check_account_jobs(rules, "physics", 1));
  EXPECT_FALSE(check_account_jobs(rules, "physics", 2));
  EXPECT_TRUE(check_account_jobs(rules, "", 99));
}

}  // namespace
}  // namespace score::head
