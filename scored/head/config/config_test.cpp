#include "scored/head/config/config.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

std::string problem(std::string_view text) {
  const auto config = parse_config(text, "x.toml");
  return config ? "" : config.error().context();
}

TEST(HeadConfig, OnlyNodesHaveNoDefault) {
  const auto config = parse_config("[head]\nnodes = \"n[0-3]\"", "x.toml");
  ASSERT_TRUE(config);
  EXPECT_EQ(config->nodes, (std::vector<std::string>{"n0", "n1", "n2", "n3"}));
  EXPECT_EQ(config->socket, "/run/scored/head.sock");
  EXPECT_EQ(config->settings, Settings());
  EXPECT_EQ(config->for_cluster().node_timeout, 30s);
  EXPECT_EQ(parse_config("[head]\nnodes = \"a\"\nnode_timeout = \"5s\"", "x")->node_timeout, 5s);
  EXPECT_EQ(config->control_fanout, 16U);
  EXPECT_EQ(parse_config("[head]\nnodes = \"a\"\ncontrol_fanout = 8", "x")->control_fanout, 8U);
  EXPECT_FALSE(parse_config("[head]\nnodes = \"a\"\ncontrol_fanout = 3", "x"));
  EXPECT_EQ(config->for_cluster().deadlock_after, 5s);
  EXPECT_FALSE(
      parse_config("[head]\nnodes = \"a\"\novercommit = false", "x")->for_cluster().overcommit);
  const auto tree = parse_config("[head]\nnodes = \"a\"\nplacement = \"dqt\"", "x");
  EXPECT_EQ(tree->for_cluster().placement, gang::Placement::Dqt);
  EXPECT_FALSE(parse_config("[head]\nnodes = \"a\"\nplacement = \"easy\"", "x"));
  EXPECT_EQ(tree->for_cluster().long_limit, 5min);
  EXPECT_EQ(tree->for_cluster().long_shared, 1h);
  EXPECT_EQ(parse_config("[head]\nnodes = \"a\"\nlong_limit = \"0s\"", "x")->long_limit, 0s);
  EXPECT_FALSE(parse_config("[head]\nnodes = \"a\"\nidle_detection = false", "x")
                   ->for_cluster()
                   .idle_detection);
}

TEST(HeadConfig, FindsItselfAmongTwoHeads) {
  const auto read = [](const std::string& lines) {
    return parse_config("[head]\nnodes = \"a\"\n" + lines, "x");
  };
  const std::string two = "heads = [\"127.0.0.1:7001\", \"127.0.0.1:7002\"]\n";
  EXPECT_FALSE(read("")->has_two_heads());
  EXPECT_EQ(read(two + "listen = \"127.0.0.1:7001\"")->self, 0U);
  EXPECT_EQ(read(two + "listen = \"127.0.0.1:7002\"")->self, 1U);
  EXPECT_EQ(read(two + "this_head = \"127.0.0.1:7002\"")->self, 1U);
  EXPECT_FALSE(read(two + "this_head = \"127.0.0.1:7003\""));
  EXPECT_FALSE(read(two)) << "neither is this host";
  EXPECT_FALSE(read("heads = [\"a:1\"]"));
  EXPECT_FALSE(read("heads = [\"a:1\", \"a:1\"]\nthis_head = \"a:1\""));
  EXPECT_FALSE(read("heads = [\"a:1\", \"b:0\"]\nthis_head = \"a:1\""));
  EXPECT_FALSE(read("heads = [\"a:1\", \"b:1\", \"c:1\"]\nthis_head = \"a:1\""));
  EXPECT_FALSE(read("this_head = \"a:1\""));
  const auto running = read(two + "this_head = \"127.0.0.1:7002\"");
  EXPECT_FALSE(check_reload(*running, *read("listen = \"127.0.0.1:7421\"")));
  const auto more =
      parse_config("[head]\nnodes = \"a,b\"\n" + two + "this_head = \"127.0.0.1:7002\"", "x");
  EXPECT_FALSE(check_reload(*running, *more)) << "both heads must count the same witnesses";
}

TEST(HeadConfig, WitnessesAreOneThreeOrFiveNodes) {
  const std::string heads = "heads = [\"a:1\", \"b:1\"]\nthis_head = \"a:1\"\n";
  const auto read = [](const std::string& lines) {
    return parse_config("[head]\nnodes = \"n[0-9]\"\n" + lines, "x");
  };
  EXPECT_TRUE(read(heads)->witnesses.empty());
  EXPECT_EQ(read(heads + "witnesses = \"n[2-4]\"")->witnesses,
            (std::vector<std::string>{"n2", "n3", "n4"}));
  EXPECT_EQ(read(heads + "witnesses = \"n7\"")->witnesses.size(), 1U);
  EXPECT_EQ(read(heads + "witnesses = \"n[0-4]\"")->witnesses.size(), 5U);
  for (const char* wrong : {"n[0-1]", "n[0-3]", "n[0-6]", "n1,n1,n2", "m1", "n["}) {
    EXPECT_FALSE(read(heads + "witnesses = \"" + wrong + "\"")) << wrong;
  }
  EXPECT_FALSE(read("witnesses = \"n1\"")) << "one head has none";
  EXPECT_FALSE(check_reload(*read(heads), *read(heads + "witnesses = \"n1\"")));
}

TEST(HeadConfig, EtcdLeaseNeedsTwoHeadsWithoutWitnesses) {
  const std::string heads = "heads = [\"a:1\", \"b:1\"]\nthis_head = \"a:1\"\n";
  const std::string lease =
      "[heads]\nlease = \"etcd\"\netcd = [\"https://e:2379\"]\netcd_ca = \"/ca.pem\"\n";
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\n" + heads + lease), "");
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\n" + lease).substr(0, 9), "x.toml:4:");
  const std::string both = "[head]\nnodes = \"a\"\n" + heads + "witnesses = \"a\"\n" + lease;
  EXPECT_EQ(problem(both).substr(0, 9), "x.toml:5:");
  const auto without = parse_config("[head]\nnodes = \"a\"\n" + heads, "x");
  const auto with = parse_config("[head]\nnodes = \"a\"\n" + heads + lease, "x");
  ASSERT_TRUE(without && with);
  EXPECT_FALSE(check_reload(*without, *with)) << "a reload does not move the lease";
  EXPECT_TRUE(check_reload(*with, *with));
}

TEST(HeadConfig, ReadsTheFillPolicy) {
  const auto read = [](const std::string& lines) {
    return *parse_config("[head]\nnodes = \"a\"\n" + lines, "x");
  };
  EXPECT_FALSE(read("").for_cluster().fill);
  EXPECT_FALSE(read("fill = \"off\"").for_cluster().fill);
  EXPECT_TRUE(read("fill = \"on\"").for_cluster().fill);
  EXPECT_TRUE(read("fill = true").for_cluster().fill);
  EXPECT_FALSE(read("overcommit = \"off\"").for_cluster().overcommit);
  EXPECT_EQ(read("").for_cluster().fill_queues, (std::vector{Queue::High, Queue::Normal}));
  EXPECT_EQ(read("fill_queues = [\"normal\"]").for_cluster().fill_queues,
            (std::vector{Queue::Normal}));
  EXPECT_FALSE(read("[network]\nswitch_mode = \"barrier\"").for_cluster().can_fill);
}

TEST(HeadConfig, RefusesAnUnknownFillPolicy) {
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\nfill = \"maybe\""),
            "x.toml:3: fill: must be true, false, \"on\" or \"off\"");
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\nfill = 1").substr(0, 9), "x.toml:3:");
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\nfill_queues = [\"exclusive\"]"),
            "x.toml:3: fill_queues: unknown queue 'exclusive' (high or normal)");
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\nfill = \"on\"\n[network]\nswitch_mode = \"barrier\""),
            "x.toml:3: fill: must be \"off\" with switch_mode = \"barrier\"");
}

TEST(HeadConfig, ReportsErrorsWithFileAndLine) {
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\nquantm = \"1s\""),
            "x.toml:3: unknown key 'head.quantm'");
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\nquantum = \"1h\"").substr(0, 9), "x.toml:3:");
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\nnode_timeout = \"3s\"").substr(0, 9), "x.toml:3:");
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\ndeadlock_after = \"1s\"").substr(0, 9), "x.toml:3:");
  EXPECT_EQ(problem("[head]\nnodes = \"a,a\"").substr(0, 9), "x.toml:2:");
  EXPECT_EQ(problem("[head]\nnodes = \"a[\"").substr(0, 9), "x.toml:2:");
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\nlisten = \"here\"").substr(0, 9), "x.toml:3:");
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\nstate_dir = \"x\"").substr(0, 9), "x.toml:3:");
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\nlogin_nodes = \"b\""),
            "x.toml:3: login_nodes: b is not one of the nodes");
  EXPECT_NE(problem("[head]\nslots = 3"), "");
}

TEST(HeadConfig, IgnoresTheNodeSection) {
  EXPECT_EQ(problem("[head]\nnodes = \"a\"\n[node]\nanything = 1"), "");
}

TEST(HeadConfig, ReloadsWhatCanChange) {
  const HeadConfig running = *parse_config("[head]\nnodes = \"n[0-1]\"", "x");
  const auto reload = [&running](std::string_view text) {
    return check_reload(running, *parse_config(text, "x"));
  };
  EXPECT_TRUE(reload("[head]\nnodes = \"n[0-2]\"\nquantum = \"20ms\"\noperators = [\"a\"]"));
  EXPECT_FALSE(reload("[head]\nnodes = \"n0\""));
  EXPECT_FALSE(reload("[head]\nnodes = \"n[0-1]\"\nlisten = \"127.0.0.1:1\""));
  EXPECT_FALSE(reload("[head]\nnodes = \"n[0-1]\"\nstate_dir = \"/x\""));
  EXPECT_FALSE(reload("[head]\nnodes = \"n[0-1]\"\nswitch_always = true"));
}

TEST(HeadConfig, NamesEverythingThatNeedsARestart) {
  const HeadConfig running = *parse_config("[head]\nnodes = \"n0\"", "x");
  const auto wanted = parse_config(
      "[head]\nnodes = \"n0\"\ncluster = \"b\"\nnode_timeout = \"1m\"\n"
      "[monitor]\nlisten = \"none\"",
      "x");
  ASSERT_TRUE(wanted) << wanted.error().message();
  const auto checked = check_reload(running, *wanted);
  ASSERT_FALSE(checked);
  EXPECT_TRUE(checked.error().message().starts_with("cluster, node_timeout, [monitor]: a change "))
      << checked.error().message();
}

}  // namespace
}  // namespace score::head
