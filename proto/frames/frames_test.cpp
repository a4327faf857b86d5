#include "proto/frames/frames.hpp"

#include "base/limits.hpp"
#include "proto/client.pb.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>

namespace score::proto {
namespace {

constexpr const char* kPermissionsFile = SCORE_SOURCE_DIR "/proto/permissions.md";
constexpr const char* kPreface =
    "# Permitted senders\n\n"
    "The roles that may send each frame. The annotations in the .proto files are the source; a\n"
    "test compares them with this page, so a new frame needs a row. OTHER_USER does not own the\n"
    "job that the request names; an operator or root who owns it is also OWNER. An operator may\n"
    "Attach to another user's job only to watch (no front end, no input), and SignalJob only with\n"
    "TERM, KILL, STOP and CONT (`scored/head/admin/permissions.hpp`).\n\n";

std::string senders_of(FrameType type) {
  std::string senders;
  for (std::size_t i = 0; i < kRoleCount; ++i) {
    if (!may_send(Role{static_cast<std::uint8_t>(i)}, type)) continue;
    if (!senders.empty()) senders += ", ";
    senders += kRoleNames[i];
  }
  return senders;
}

std::string permission_table() {
  std::string text = kPreface;
  text += "| type | frame | max bytes | senders |\n| --- | --- | --- | --- |\n";
  for (const FrameRule& rule : kFrameRules) {
    text += fmt::format("| {} | {} | {} | {} |\n", static_cast<unsigned>(rule.type), rule.name,
                        rule.max_bytes, senders_of(rule.type));
  }
  return text;
}

TEST(Permissions, TableMatchesItsDocument) {
  std::ifstream file(kPermissionsFile);
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string table = permission_table();
  EXPECT_TRUE(page == table) << kPermissionsFile << " must be:\n" << table;
}

TEST(Permissions, UnprovenPeerMaySendOnlyAHello) {
  for (const FrameRule& rule : kFrameRules) {
    EXPECT_EQ(may_open(Role::Anonymous, rule.type), rule.type == FrameType::ClientHello)
        << rule.name;
    EXPECT_FALSE(may_open(Role::WrongNode, rule.type)) << rule.name;
  }
}

TEST(Permissions, OnlyRootAndOperatorsControlTheCluster) {
  for (FrameType type :
       {FrameType::Set, FrameType::DrainNodes, FrameType::Reload, FrameType::Shutdown}) {
    for (Role role : {Role::Anonymous, Role::OtherUser, Role::Owner, Role::Node, Role::Head,
                      Role::NodeDaemon, Role::Shepherd}) {
      EXPECT_FALSE(may_open(role, type)) << name_of(type) << " from " << name_of(role);
    }
  }
}

TEST(Permissions, UserMayOpenFramesOfAJobOwner) {
  EXPECT_FALSE(may_send(Role::OtherUser, FrameType::CancelJob));
  EXPECT_TRUE(may_open(Role::OtherUser, FrameType::CancelJob));
  EXPECT_TRUE(may_send(Role::Owner, FrameType::CancelJob));
}

TEST(Frames, AreFoundByNumberAndByMessage) {
  EXPECT_EQ(frame_type<wire::Submit>(), FrameType::Submit);
  const FrameRule* rule = find_rule(FrameType::Submit);
  ASSERT_NE(rule, nullptr);
  EXPECT_STREQ(rule->name, "Submit");
  EXPECT_EQ(name_of(FrameType::Submit), "Submit");
  EXPECT_EQ(name_of(Role::OtherUser), "OTHER_USER");
}

TEST(Frames, LargestSubmissionFitsIntoItsFrames) {
  constexpr std::size_t kMost =
      base::limits::kMaxExecBytes + base::limits::kMaxScriptBytes + base::limits::kMiB / 2;
  for (FrameType type :
       {FrameType::Submit, FrameType::Plan, FrameType::PrepareTasks, FrameType::ShepherdPrepare}) {
    ASSERT_NE(find_rule(type), nullptr);
    EXPECT_GE(find_rule(type)->max_bytes, kMost) << name_of(type);
  }
}

TEST(Frames, LookupAcceptsAnyNumber) {
  std::size_t known = 0;
  for (unsigned number = 0; number <= 0xffff; ++number) {
    const FrameType type{static_cast<std::uint16_t>(number)};
    known += find_rule(type) != nullptr ? 1 : 0;
    if (find_rule(type) != nullptr) continue;
    ASSERT_EQ(name_of(type), "unknown");
    ASSERT_FALSE(may_open(Role::Root, type));
  }
  EXPECT_EQ(known, kFrameRules.size());
  EXPECT_EQ(name_of(Role{77}), "unknown");
}

}  // namespace
}  // namespace score::proto
