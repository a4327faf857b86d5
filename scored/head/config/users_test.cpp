#include "scored/head/config/users.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

constexpr UserId kNobody(65534);
constexpr UserId kNameless(4'000'000'001);

TEST(Users, GivesRootToUidZeroAndToTheHeadsOwnUser) {
  Users users({}, UserId(500));
  EXPECT_EQ(users.role(UserId(0), {}), proto::Role::Root);
  EXPECT_EQ(users.role(UserId(500), {}), proto::Role::Root);
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::OtherUser);
}

TEST(Users, MakesOperatorsOfNamesNumbersAndMembers) {
  Users by_name({{"nobody"}, ""}, UserId(0));
  EXPECT_EQ(by_name.role(kNobody, {}), proto::Role::Operator);
  Users by_number({{"4000000001"}, ""}, UserId(0));
  EXPECT_EQ(by_number.role(kNameless, {}), proto::Role::Operator);
  EXPECT_EQ(by_number.role(kNobody, {}), proto::Role::OtherUser);
  Users by_group({{}, "nogroup"}, UserId(0));
  EXPECT_EQ(by_group.role(kNobody, {}), proto::Role::Operator);
  EXPECT_EQ(by_group.role(kNameless, {}), proto::Role::OtherUser);
}

TEST(Users, ExemptsNamesNumbersAndMembersFromLimits) {
  Users users({}, UserId(500));
  EXPECT_FALSE(users.is_exempt(kNobody, {}));
  users.set_exempt({"nobody", "4000000001"});
  EXPECT_TRUE(users.is_exempt(kNobody, {}));
  EXPECT_TRUE(users.is_exempt(kNameless, {}));
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::OtherUser) << "he is no operator for it";
  users.set_exempt({"@nogroup"});
  EXPECT_TRUE(users.is_exempt(kNobody, {}));
  EXPECT_FALSE(users.is_exempt(kNameless, {}));
  users.set_exempt({"@no-such-group", "nogroup"});
  EXPECT_FALSE(users.is_exempt(kNobody, {}));
}

TEST(Users, ForgetsOperatorsWhenTheRuleChanges) {
  Users users({{"nobody"}, ""}, UserId(0));
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::Operator);
  users.set_rule({});
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::OtherUser);
}

TEST(Users, KnowsAnAccountByItsNameAlone) {
  Users users({}, UserId(500));
  EXPECT_EQ(users.named("root", TimePoint{1s}), UserId(0));
  EXPECT_EQ(users.named("root", TimePoint{2s}), UserId(0));
  EXPECT_FALSE(users.named("0", TimePoint{1s}));
  EXPECT_FALSE(users.named("no-such-account", TimePoint{1s}));
  EXPECT_FALSE(users.named("", TimePoint{1s}));
}

TEST(Users, NamesWhoHasNoNameByNumber) {
  Users users({}, UserId(0));
  EXPECT_EQ(users.name(UserId(0), {}), "root");
  EXPECT_EQ(users.name(kNameless, {}), "4000000001");
}

}  // namespace
}  // namespace score::head
