#include "scout/session/installed_cluster.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::scout {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kHeads = R"(heads = ["a:7421", "b:7421"])";

TEST(InstalledCluster, ClusterWithOneHeadGivesNoAddresses) {
  for (const char* text :
       {"", "[node]\nhead = \"a:7421\"\n", "[head]\n# heads = [\"a:1\", \"b:1\"]\n",
        "[head]\nheads = []\n", "[head]\nheads = [\"a:1\"]\n"}) {
    EXPECT_TRUE(parse_installed(text).heads.empty()) << text;
    EXPECT_TRUE(parse_installed(text).sockets.empty()) << text;
  }
}

TEST(InstalledCluster, HeadHostPrefersTheSocketOfTheHead) {
  const auto cluster = parse_installed(std::string("[head]\n  ") + kHeads);
  EXPECT_EQ(cluster.heads, (Words{"a:7421", "b:7421"}));
  EXPECT_EQ(cluster.sockets, (Words{"/run/scored/head.sock", "/run/scored-node/commands.sock"}));
}

TEST(InstalledCluster, LoginNodeListsItsSocketOnce) {
  const auto cluster = parse_installed(std::string("[node]\n") + kHeads +
                                       "\nlogin_socket = \"/run/scored/head.sock\"\n");
  EXPECT_EQ(cluster.heads, (Words{"a:7421", "b:7421"}));
  EXPECT_EQ(cluster.sockets, (Words{"/run/scored/head.sock"}));
}

TEST(InstalledCluster, OtherPathsComeFirst) {
  const auto cluster = parse_installed(std::string("[head]\nrun_dir = \"/run/x\"\n") + kHeads +
                                       "\n[node]\nrun_dir = \"/run/y\"\n[other]\nkey = 1\n");
  EXPECT_EQ(cluster.sockets,
            (Words{"/run/x/head.sock", "/run/y/commands.sock", "/run/scored/head.sock"}));
  const auto list = parse_installed(std::string("[head]\nsocket = \"/a,/b\"\n") + kHeads);
  EXPECT_EQ(list.sockets, (Words{"/run/scored-node/commands.sock", "/run/scored/head.sock"}));
}

TEST(InstalledCluster, MalformedTextGivesNoAddresses) {
  EXPECT_TRUE(parse_installed("heads = [").sockets.empty());
  EXPECT_TRUE(parse_installed("[head]\nheads = 7\n").sockets.empty());
  EXPECT_TRUE(parse_installed("[head]\nheads = [1, 2]\n").heads.empty());
  std::mt19937 random(1);
  const std::string sound = std::string("[head]\n") + kHeads + "\nsocket = \"/x\"\n";
  for (int round = 0; round < 2000; ++round) {
    std::string text = sound.substr(0, random() % (sound.size() + 1));
    if (!text.empty()) text[random() % text.size()] = static_cast<char>(random());
    const auto cluster = parse_installed(text);
    for (const auto& socket : cluster.sockets) EXPECT_TRUE(socket.starts_with('/')) << text;
  }
}

}  // namespace
}  // namespace score::scout
