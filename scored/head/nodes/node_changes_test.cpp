#include "scored/head/nodes/node_changes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace score::head {
namespace {

using Nodes = std::vector<std::string>;

TEST(NodeChanges, AddedNodesFollowThoseOfTheFile) {
  NodeChanges changes;
  changes.add("b");
  changes.add("z");
  changes.remove("c");
  EXPECT_EQ(changes.applied_to({"d", "c", "b"}), (Nodes{"d", "b", "z"}));
}

TEST(NodeChanges, LastChangeOfANodeCounts) {
  NodeChanges changes;
  changes.add("a");
  changes.remove("a");
  EXPECT_EQ(changes.applied_to({"a"}), Nodes{});
  changes.add("a");
  EXPECT_EQ(changes.applied_to({}), Nodes{"a"});
}

TEST(NodeChanges, TextIsReadBack) {
  NodeChanges changes;
  changes.add("node05");
  changes.remove("node01");
  EXPECT_EQ(changes.text(), "+node05\n-node01\n");
  EXPECT_EQ(*NodeChanges::parse(changes.text()), changes);
}

TEST(NodeChanges, OtherTextIsRefused) {
  for (const char* text : {"node05\n", "+\n", "+no de\n", "*node05\n", "+../x\n", "\x01\n"}) {
    EXPECT_TRUE(NodeChanges::parse(text).error().is(Errc::Malformed)) << text;
  }
}

}  // namespace
}  // namespace score::head
