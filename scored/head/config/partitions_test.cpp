#include "scored/head/config/partitions.hpp"

#include "scored/head/config/config.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

constexpr const char* kNodes = "[head]\nnodes = \"node[0-3]\"\n[accounts.physics]\n";

Result<HeadConfig> parse(const std::string& tables) {
  return parse_config(kNodes + tables, "t");
}

std::string problem_of(const std::string& tables) {
  const auto config = parse(tables);
  return config ? "" : config.error().context();
}

HeadConfig some_config() {
  return parse(
             "[partitions.long]\nnodes = \"node[0-3]\"\nusers = [\"bob\", \"@chem\"]\n"
             "accounts = [\"physics\"]\nfill = false\nmax_jobs = 2\n"
             "[partitions.short]\nnodes = \"node[2-3,2]\"\ndefault = true\nmax_time = \"1h\"\n"
             "max_nodes = 2\nmax_running_jobs = 3\nmax_memory = \"4G\"\norder = 5\n")
      .value();
}

Submitter user(const std::string& name, bool is_limited = true) {
  return {name, UserId(1000), is_limited, {}};
}

TEST(PartitionConfig, ReadsAllKeys) {
  const PartitionRules rules = some_config().partitions;
  ASSERT_EQ(rules.all.size(), 2U);
  const PartitionRule& all = *rules.find("long");
  EXPECT_EQ(all.nodes.size(), 4U);
  EXPECT_EQ(all.users, (std::vector<std::string>{"bob", "@chem"}));
  EXPECT_EQ(all.accounts, std::vector<std::string>{"physics"});
  EXPECT_FALSE(all.fill);
  EXPECT_EQ(all.max_jobs, 2U);
  const PartitionRule& some = *rules.find("short");
  EXPECT_EQ(some.nodes, (std::vector<std::string>{"node2", "node3"}));
  EXPECT_TRUE(some.is_default);
  EXPECT_EQ(some.max_time, 1h);
  EXPECT_EQ(some.limits, (RunningLimits{3, 2, Bytes(4096 * limits::kMiB), 0}));
  EXPECT_EQ(rules.for_cluster().at(1).order, 5);
  EXPECT_EQ(rules.of_node("node1"), std::vector<std::string>{"long"});
  EXPECT_EQ(rules.of_node("node2"), (std::vector<std::string>{"long", "short"}));
  EXPECT_EQ(rules.groups(), std::vector<std::string>{"chem"});
  EXPECT_EQ(some_config().user_groups(), std::vector<std::string>{"chem"});
  EXPECT_TRUE(parse("").value().partitions.all.empty());
}

TEST(PartitionConfig, ProblemIsOneLine) {
  EXPECT_EQ(problem_of("[partitions.a]\n"), "t:4: nodes: partition a needs at least one node");
  EXPECT_EQ(problem_of("[partitions.a]\nnodes = \"\"\n"),
            "t:5: nodes: partition a needs at least one node");
  EXPECT_EQ(problem_of("[partitions.a]\nnodes = \"node[2-5]\"\n"),
            "t:5: nodes: node4 is not one of the nodes of [head]");
  EXPECT_EQ(problem_of("[partitions.a]\nnodes = \"node0\"\ndefault = true\n"
                       "[partitions.b]\nnodes = \"node1\"\ndefault = true\n"),
            "t:9: default: partition a is the default already");
  EXPECT_EQ(problem_of("[partitions.a]\nnodes = \"node0\"\naccounts = [\"math\"]\n"),
            "t:6: accounts: there is no table [accounts.math]");
  EXPECT_EQ(problem_of("[partitions.\"a b\"]\nnodes = \"node0\"\n"),
            "t:5: nodes: partition names have letters, digits, '-' only");
  EXPECT_EQ(problem_of("[partitions.a]\nnodes = \"node0\"\nspeed = 3\n"),
            "t:6: unknown key 'partitions.a.speed'");
  EXPECT_NE(problem_of("[partitions.a]\nnodes = \"node[\"\n"), "");
  EXPECT_NE(problem_of("[partitions]\na = 3\n"), "");
}

TEST(PartitionConfig, ReadsLicenses) {
  const LicenseRules rules =
      parse("[licenses]\nmatlab = 5\nansys = 1\nrelease_suspended = true\n").value().licenses;
  EXPECT_EQ(rules.totals, (std::vector<base::License>{{"ansys", 1}, {"matlab", 5}}));
  EXPECT_TRUE(rules.release_suspended);
  EXPECT_EQ(problem_of("[licenses]\nmatlab = 0\n"), "t:5: matlab: 0 is not between 1 and 1000000");
  EXPECT_EQ(problem_of("[licenses]\nmatlab = \"5\"\n"), "t:5: matlab: must be an integer");
  EXPECT_EQ(problem_of("[licenses]\n\"a b\" = 5\n"),
            "t:5: a b: license names have letters, digits, '-' only");
}

TEST(EnterPartition, SetsDefaultsAndTimeLimit) {
  const PartitionRules rules = some_config().partitions;
  ResourceRequest request;
  ASSERT_TRUE(enter_partition(rules, user("alice"), request));
  EXPECT_EQ(request.partition, "short");
  EXPECT_EQ(request.scheduled_limit, 1h);
  EXPECT_FALSE(request.no_fill);
  ResourceRequest wide;
  wide.partition = "long";
  ASSERT_TRUE(enter_partition(rules, user("bob"), wide));
  EXPECT_EQ(wide.scheduled_limit, 0s);
  EXPECT_TRUE(wide.no_fill);
  ResourceRequest none;
  ASSERT_TRUE(enter_partition(PartitionRules(), user("bob"), none));
  EXPECT_EQ(none.partition, "");
  ResourceRequest scout;
  scout.overlay = true;
  ASSERT_TRUE(enter_partition(rules, user("bob"), scout));
  EXPECT_EQ(scout.partition, "");
}

TEST(EnterPartition, RefusalNamesTheLimit) {
  const PartitionRules rules = some_config().partitions;
  const auto refusal = [&](const std::string& partition, const auto& change,
                           bool is_limited = true) {
    ResourceRequest request;
    request.partition = partition;
    change(request);
    const auto entered = enter_partition(rules, user("alice", is_limited), request);
    return entered ? std::string() : entered.error().context();
  };
  const auto nothing = [](ResourceRequest&) {};
  EXPECT_EQ(refusal("middle", nothing), "no partition middle: yours: short");
  EXPECT_EQ(refusal("long", nothing), "user alice may not use partition long; yours: short");
  EXPECT_EQ(refusal("long", nothing, false), "");
  EXPECT_EQ(refusal("long", [](ResourceRequest& r) { r.account = "physics"; }), "");
  EXPECT_EQ(refusal("short", [](ResourceRequest& r) { r.wall_limit = 2h; }),
            "requested a time limit of 2h; partitions.short.max_time of the head is 1h");
  EXPECT_EQ(refusal(
                "short", [](ResourceRequest& r) { r.wall_limit = 2h; }, false),
            "");
  EXPECT_EQ(refusal("short", [](ResourceRequest& r) { r.nodes = 3; }),
            "requested 3 nodes; partitions.short.max_nodes of the head is 2");
  EXPECT_TRUE(check_partition_jobs(rules, user("bob"), "long", 1));
  EXPECT_EQ(check_partition_jobs(rules, user("bob"), "long", 2).error().context(),
            "user bob has 2 jobs queued or running in partition long; partitions.long.max_jobs of "
            "the head is 2");
  EXPECT_TRUE(check_partition_jobs(rules, user("bob", false), "long", 9));
}

}  // namespace
}  // namespace score::head
