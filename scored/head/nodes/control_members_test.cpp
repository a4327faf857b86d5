#include "scored/head/nodes/control_members.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

constexpr TimePoint kStart{1s};
const control::MemberAddress kHead{{{0, 0, 0, 0, 0, 9}}, {}};

control::MemberAddress address(std::uint8_t port) {
  return {{{10, 0, 0, 1, 0, port}}, {}};
}

TEST(ControlMembers, ChangesAreCollectedIntoOneRoster) {
  ControlMembers members;
  EXPECT_FALSE(members.due());
  EXPECT_TRUE(members.set(NodeId(1), address(1), kStart));
  EXPECT_TRUE(members.set(NodeId(4), address(4), kStart + 50ms));
  const auto due = members.due();
  ASSERT_TRUE(due);
  EXPECT_GE(*due, kStart + 100ms);
  EXPECT_LT(*due, kStart + 110ms);
  const auto roster = members.make(7, 8, kHead);
  EXPECT_FALSE(members.due());
  EXPECT_EQ(roster.generation, 7U);
  EXPECT_EQ(roster.key, 8U);
  EXPECT_EQ(roster.members.size(), 6U);
  EXPECT_EQ(roster.members[0], kHead);
  EXPECT_TRUE(roster.has(2) && roster.has(5));
  EXPECT_FALSE(roster.has(1) || roster.has(3));
}

TEST(ControlMembers, OnlyAChangeMakesANewRoster) {
  ControlMembers members;
  members.set(NodeId(0), address(1), kStart);
  members.make(1, 1, kHead);
  EXPECT_FALSE(members.set(NodeId(0), address(1), kStart));
  EXPECT_FALSE(members.remove(NodeId(9), kStart)) << "it was none";
  EXPECT_FALSE(members.due());
  EXPECT_TRUE(members.set(NodeId(0), address(2), kStart)) << "its daemon is a new one";
  EXPECT_TRUE(members.due());
}

TEST(ControlMembers, RosterWithoutNodesIsEmpty) {
  ControlMembers members;
  members.set(NodeId(0), address(1), kStart);
  EXPECT_TRUE(members.remove(NodeId(0), kStart));
  EXPECT_EQ(members.count(), 0U);
  EXPECT_TRUE(members.make(1, 1, kHead).members.empty());
}

TEST(ControlMembers, ManyMembersGetRostersLessOften) {
  ControlMembers members;
  for (std::uint32_t i = 0; i < 4096; ++i) members.set(NodeId(i), address(1), kStart);
  EXPECT_GE(*members.due(), kStart + 1s);
}

}  // namespace
}  // namespace score::head
