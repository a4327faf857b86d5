#include "scout/setup/checks.hpp"
#include "scout/setup/config_text.hpp"
#include "scout/setup/host.hpp"

#include <gtest/gtest.h>

namespace score::scout {
namespace {

TEST(ConfigText, OnlyTheLineOfTheKeyIsReplaced) {
  const std::string text =
      "# file\n[head]\n# name\ncluster = \"a\"\n# nodes = \"x\"\n\n[node]\ncluster = \"a\"\n";
  EXPECT_EQ(
      set_key(text, "head", "cluster", "\"b\""),
      "# file\n[head]\n# name\ncluster = \"b\"\n# nodes = \"x\"\n\n[node]\ncluster = \"a\"\n");
  EXPECT_EQ(set_key(text, "head", "nodes", "\"y\""),
            "# file\n[head]\n# name\ncluster = \"a\"\nnodes = \"y\"\n\n[node]\ncluster = \"a\"\n");
}

TEST(ConfigText, ValueIsPreferredToComment) {
  EXPECT_EQ(set_key("[head]\n# nodes = \"1\"\nnodes = \"2\"\n", "head", "nodes", "\"3\""),
            "[head]\n# nodes = \"1\"\nnodes = \"3\"\n");
}

TEST(ConfigText, MissingKeyOrTableIsAdded) {
  EXPECT_EQ(set_key("", "head", "a", "1"), "\n[head]\na = 1\n");
  EXPECT_EQ(set_key("[head]\nb = 2\n[node]\n", "head", "a", "1"), "[head]\na = 1\nb = 2\n[node]\n");
  EXPECT_EQ(set_key("[heads]\na = 2", "head", "a", "1"), "[heads]\na = 2\n\n[head]\na = 1\n");
}

TEST(ConfigText, LongerKeyIsNotReplaced) {
  EXPECT_EQ(set_key("[head]\nlisten_more = 2\n", "head", "listen", "1"),
            "[head]\nlisten = 1\nlisten_more = 2\n");
}

TEST(ConfigText, SecondSetChangesNothing) {
  const std::string once = set_key("[head]\n", "head", "a", "1");
  EXPECT_EQ(set_key(once, "head", "a", "1"), once);
}

HostState good_host() {
  HostState host;
  host.name = "node01";
  host.has_unified_cgroups = true;
  host.cgroup_controllers = {"cpu", "memory"};
  host.interface = "eth0";
  host.mtu = 1500;
  host.users = {{{"alice", 2001}, 2001}};
  return host;
}

ClusterFacts cluster() {
  ClusterFacts facts;
  facts.node = "node01";
  facts.payload_bytes = 1424;
  return facts;
}

// Checks that the host has one finding, whose text contains `text`.
void expect_finding(const HostState& host, bool is_fatal, const std::string& text) {
  const auto found = check_host(host, cluster());
  ASSERT_EQ(found.size(), 1U) << text;
  EXPECT_EQ(found[0].is_fatal, is_fatal);
  EXPECT_NE(found[0].text.find(text), std::string::npos) << found[0].text;
}

TEST(Checks, GoodHostHasNoFindings) {
  EXPECT_TRUE(check_host(good_host(), cluster()).empty());
}

TEST(Checks, FindingsNameProblemAndRemedy) {
  HostState host = good_host();
  host.name = "node02";
  expect_finding(host, true, "--name node01");

  host = good_host();
  host.has_unified_cgroups = false;
  expect_finding(host, true, "systemd.unified_cgroup_hierarchy=1");

  host = good_host();
  host.cgroup_controllers = {"cpu"};
  expect_finding(host, false, "memory is missing");

  host = good_host();
  host.ahead_of_head = -3min;
  expect_finding(host, true, "180 s behind");
  host.ahead_of_head = 3min;
  expect_finding(host, true, "180 s ahead of");

  host = good_host();
  host.mtu = 1400;
  expect_finding(host, true, "payload = 1324");

  host = good_host();
  host.users = {{{"alice", 2001}, 2002}};
  expect_finding(host, true, "alice has uid 2002 here and 2001");

  host = good_host();
  host.users = {{{"alice", 2001}, std::nullopt}};
  expect_finding(host, true, "alice (2001)");
}

TEST(Checks, SmallClockDifferencesAreAllowed) {
  HostState host = good_host();
  host.ahead_of_head = 61s;
  host.clock_error = 2s;
  EXPECT_TRUE(check_host(host, cluster()).empty());
}

TEST(Checks, OnlySomeOfManyUsersAreNamed) {
  HostState host = good_host();
  host.users.clear();
  for (std::uint32_t i = 0; i < 100; ++i) {
    host.users.push_back({{fmt::format("user{}", i), 3000 + i}, std::nullopt});
  }
  const auto found = check_host(host, cluster());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].text.find("100 of the head's users"), std::string::npos);
  EXPECT_EQ(found[0].text.find("user50"), std::string::npos);
}

TEST(NameServers, NumericAddressesAreRead) {
  const std::vector<std::string> expected = {"192.0.2.53", "2001:db8::53", "127.0.0.53"};
  EXPECT_EQ(name_servers("# nameserver 1.1.1.1\nnameserver 192.0.2.53\n"
                         "  nameserver   2001:db8::53 \nsearch example.org\nnameserver\n"
                         "nameserver x\nnameserver fe80::1%eth0\nnameserver 127.0.0.53"),
            expected);
  EXPECT_TRUE(name_servers("").empty());
}

}  // namespace
}  // namespace score::scout
