#include "scout/start/plan/hosts.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::scout {
namespace {

std::string told(const Result<std::vector<Host>>& hosts) {
  if (!hosts) return "error: " + hosts.error().message();
  std::string text;
  for (const auto& host : *hosts) {
    text += host.target + "=" + host.node + ":" + std::to_string(host.slots) + " ";
  }
  return text;
}

TEST(Hosts, ListHasRangesAndUsers) {
  EXPECT_EQ(told(parse_hosts("a, b,bob@n[1-2],10.0.0.7")),
            "a=a:0 b=b:0 bob@n1=n1:0 bob@n2=n2:0 10.0.0.7=10.0.0.7:0 ");
}

TEST(Hosts, Ipv6AddressesAreHosts) {
  EXPECT_EQ(told(parse_hosts("::1,[2001:DB8::5],bob@[fe80::1%eth0],n[1-2],2001:db8:0::")),
            "::1=0--1:0 2001:db8::5=2001-db8--5:0 bob@fe80::1%eth0=fe80--1-eth0:0 n1=n1:0 n2=n2:0 "
            "2001:db8::=2001-db8--0:0 ");
  EXPECT_EQ(told(parse_hostfile("[::1]:4\n2001:db8::2 slots=2\na:3\n")),
            "::1=0--1:4 2001:db8::2=2001-db8--2:2 a=a:3 ");
  for (const auto* list :
       {"[::1", "::1]", ":::1", "1::2::3", "fe80::1%", "fe80::1%a;b", "[n]", "-x@::1", "::g"}) {
    EXPECT_FALSE(parse_hosts(list)) << list;
  }
}

TEST(Hosts, RepeatedHostsCountOnce) {
  EXPECT_EQ(told(parse_hosts("a,b,a")), "a=a:0 b=b:0 ");
}

TEST(Hosts, HostsThatLookLikeOptionsAreRefused) {
  for (const auto* list : {"", ",", "a,,b", "-oProxyCommand=x", "a;b", "x@-a", "-x@a", "a b", "@a",
                           "a@", "$(id)", "n[1-", "n]1[", "u@a,v@a"}) {
    EXPECT_FALSE(parse_hosts(list)) << list;
  }
}

TEST(Hosts, OpenMpiFileIsParsed) {
  EXPECT_EQ(told(parse_hostfile("# cluster\na slots=4\n  b slots=2 max_slots=8 # big\n\nc\n")),
            "a=a:4 b=b:2 c=c:1 ");
}

TEST(Hosts, MpichFileIsParsed) {
  EXPECT_EQ(told(parse_hostfile("a:4\nb:2\n")), "a=a:4 b=b:2 ");
}

TEST(Hosts, PbsFileHasOneLinePerSlot) {
  EXPECT_EQ(told(parse_hostfile("a.x\na.x\nb.x\n")), "a.x=a.x:2 b.x=b.x:1 ");
}

TEST(Hosts, FileOfNamesSetsNoSlots) {
  EXPECT_EQ(told(parse_hostfile("a\nb\n")), "a=a:0 b=b:0 ");
}

TEST(Hosts, ErrorsNameTheLine) {
  EXPECT_NE(told(parse_hostfile("a\nb slots=x\n")).find("line 2"), std::string::npos);
  EXPECT_FALSE(parse_hostfile(""));
  EXPECT_FALSE(parse_hostfile("# none\n"));
  EXPECT_FALSE(parse_hostfile("a:0"));
  EXPECT_FALSE(parse_hostfile("a:99999999999"));
}

TEST(Hosts, RandomBytesAreRefusedOrSafe) {
  std::mt19937 random(7);
  const std::string letters = "ab1-_.@[],:# =\n\r\t\"'$;\\\x01\xff";
  for (int round = 0; round < 20'000; ++round) {
    std::string text;
    for (auto left = random() % 24; left > 0; --left) text += letters[random() % letters.size()];
    for (const auto& hosts : {parse_hosts(text), parse_hostfile(text)}) {
      if (!hosts) continue;
      for (const auto& host : *hosts) {
        EXPECT_EQ(host.target.find_first_of(" \n\t\"'$;\\\x01\xff,#"), std::string::npos) << text;
        EXPECT_EQ(host.node.find_first_of(" \n\t\"'$;\\\x01\xff,#:@"), std::string::npos) << text;
        EXPECT_NE(host.target.front(), '-') << text;
      }
    }
  }
}

}  // namespace
}  // namespace score::scout
