#include "scored/head/config/topology.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

std::string error_of(const std::string& text) {
  auto file = ConfigFile::parse(text, "test.toml");
  if (!file) return file.error().message();
  ConfigSection root = file->root();
  (void)read_topology(root, {"n0", "n1", "n2", "n3"});
  const auto sound = file->finish();
  return sound ? "" : sound.error().message();
}

TEST(ReadTopology, TreeOfSwitchesIsRead) {
  auto file = ConfigFile::parse(
      "[topology.a]\nnodes = \"n[0-1]\"\n[topology.b]\nnodes = \"n2,n3\"\n"
      "[topology.top]\nswitches = \"a,b\"\n",
      "test.toml");
  ASSERT_TRUE(file);
  ConfigSection root = file->root();
  const auto switches = read_topology(root, {"n0", "n1", "n2", "n3"});
  EXPECT_TRUE(file->finish());
  ASSERT_EQ(switches.size(), 3U);
  EXPECT_EQ(switches[0], (gang::Switch{"a", {"n0", "n1"}, {}}));
  EXPECT_EQ(switches[2], (gang::Switch{"top", {}, {"a", "b"}}));
}

TEST(ReadTopology, MistakesAreNamed) {
  EXPECT_EQ(error_of(""), "");
  EXPECT_NE(error_of("[topology.a]\nnodes = \"n9\"\n").find("n9 is not one of the nodes"),
            std::string::npos);
  EXPECT_NE(error_of("[topology.a]\nnodes = \"n[0\"\n").find("nodes"), std::string::npos);
  EXPECT_NE(error_of("[topology.a]\nswitches = \"b\"\n[topology.b]\nswitches = \"a\"\n")
                .find("switch a is below itself"),
            std::string::npos);
  EXPECT_NE(error_of("[topology.a]\nnodes = \"n0\"\nports = 4\n").find("ports"), std::string::npos);
  EXPECT_NE(error_of("[topology]\nnodes = \"n0\"\n"), "");
}

}  // namespace
}  // namespace score::head
