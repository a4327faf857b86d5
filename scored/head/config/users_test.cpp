#include "scored/head/config/users.hpp"

#include "base/async/task_group.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace score::head {
namespace {

constexpr UserId kNobody(65534);
constexpr UserId kNameless(4'000'000'001);

TEST(Users, RootIsUidZeroAndTheHeadsUser) {
  Users users({}, UserId(500));
  EXPECT_EQ(users.role(UserId(0), {}), proto::Role::Root);
  EXPECT_EQ(users.role(UserId(500), {}), proto::Role::Root);
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::OtherUser);
}

TEST(Users, OperatorsAreGivenByNameNumberOrGroup) {
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

TEST(Users, ReturnsTheAccountGroupsOfAUser) {
  Users users({}, UserId(500));
  EXPECT_TRUE(users.groups(kNobody, {}).empty());
  users.set_account_groups({"nogroup", "no-such-group", "daemon"});
  EXPECT_EQ(users.groups(kNobody, {}), std::set<std::string>{"nogroup"});
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::OtherUser) << "he is no operator for it";
  EXPECT_FALSE(users.is_exempt(kNobody, {})) << "nor without limits";
  EXPECT_TRUE(users.groups(kNameless, {}).empty());
}

TEST(Users, ForgetsOperatorsWhenTheRuleChanges) {
  Users users({{"nobody"}, ""}, UserId(0));
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::Operator);
  users.set_rule({});
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::OtherUser);
}

TEST(Users, FindsAnAccountOnlyByName) {
  Users users({}, UserId(500));
  EXPECT_EQ(users.named("root", TimePoint{1s}), UserId(0));
  EXPECT_EQ(users.named("root", TimePoint{2s}), UserId(0));
  EXPECT_FALSE(users.named("0", TimePoint{1s}));
  EXPECT_FALSE(users.named("no-such-account", TimePoint{1s}));
  EXPECT_FALSE(users.named("", TimePoint{1s}));
}

TEST(Users, NamelessUserIsShownByNumber) {
  Users users({}, UserId(0));
  EXPECT_EQ(users.name(UserId(0), {}), "root");
  EXPECT_EQ(users.name(kNameless, {}), "4000000001");
}

// The directory is slow: it answers only when the test says so.
struct SlowDirectory {
  Users::Runner runner() {
    return [this](std::function<void()> work, std::function<void()> done) {
      asked.emplace_back(std::move(work), std::move(done));
    };
  }

  void answer() {
    for (const auto& [work, done] : std::exchange(asked, {})) {
      work();
      done();
    }
  }

  std::vector<std::pair<std::function<void()>, std::function<void()>>> asked;
};

TEST(Users, UsesNumbersUntilTheDirectoryAnswers) {
  SlowDirectory directory;
  Users users({{"nobody"}, "nogroup"}, UserId(0), directory.runner());
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::OtherUser);
  EXPECT_EQ(users.name(kNobody, {}), "65534");
  EXPECT_FALSE(users.named("nobody", {}));
  EXPECT_EQ(directory.asked.size(), 2u) << "asks once for each, however often it is called";
  directory.answer();
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::Operator);
  EXPECT_EQ(users.name(kNobody, {}), "nobody");
  EXPECT_EQ(users.named("nobody", {}), kNobody);
}

TEST(Users, OldAnswerIsUsedUntilTheNewOne) {
  SlowDirectory directory;
  Users users({{}, "nogroup"}, UserId(0), directory.runner());
  const TimePoint start(1s);
  EXPECT_EQ(users.role(kNobody, start), proto::Role::OtherUser);
  directory.answer();
  EXPECT_EQ(users.role(kNobody, start + 59s), proto::Role::Operator);
  EXPECT_TRUE(directory.asked.empty());
  EXPECT_EQ(users.role(kNobody, start + 61s), proto::Role::Operator);
  EXPECT_EQ(directory.asked.size(), 1u);
  EXPECT_EQ(users.role(kNobody, start + 2h), proto::Role::OtherUser) << "not trusted for ever";
  EXPECT_EQ(users.name(kNobody, start + 2h), "nobody");
  directory.answer();
  EXPECT_EQ(users.role(kNobody, start + 61s), proto::Role::Operator);
}

TEST(Users, AnswerForAnOlderRuleIsIgnored) {
  SlowDirectory directory;
  Users users({{}, "nogroup"}, UserId(0), directory.runner());
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::OtherUser);
  users.set_rule({{}, "no-such-group"});
  directory.answer();
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::OtherUser);
  directory.answer();
  EXPECT_EQ(users.role(kNobody, {}), proto::Role::OtherUser);
}

TEST(Users, AccountGroupsAreTrustedLikeOperatorGroups) {
  SlowDirectory directory;
  Users users({}, UserId(0), directory.runner());
  users.set_account_groups({"nogroup"});
  const TimePoint start(1s);
  EXPECT_TRUE(users.groups(kNobody, start).empty()) << "not before the directory has answered";
  directory.answer();
  EXPECT_EQ(users.groups(kNobody, start + 59s).size(), 1U);
  EXPECT_EQ(users.groups(kNobody, start + 61s).size(), 1U) << "while it is asked again";
  EXPECT_TRUE(users.groups(kNobody, start + 2h).empty());
}

asio::awaitable<void> note_known(Users& users, bool& is_known) {
  co_await users.known(kNobody, TimePoint(), Duration(120s));
  is_known = true;
}

TEST(Users, AnswerWakesWaitingTasks) {
  SlowDirectory directory;
  Users users({}, UserId(0), directory.runner());
  asio::io_context io(1);
  TaskGroup tasks(io.get_executor(), [](std::string_view, const std::exception_ptr&) {});
  bool is_known = false;
  tasks.spawn("wait", note_known(users, is_known));
  io.poll();
  EXPECT_FALSE(is_known);
  directory.answer();
  io.restart();
  io.poll();
  EXPECT_TRUE(is_known);
}

TEST(Users, WaitsForTheCurrentGroups) {
  SlowDirectory directory;
  Users users({}, UserId(0), directory.runner());
  EXPECT_EQ(users.name(kNobody, {}), "65534");
  directory.answer();
  users.set_account_groups({"nogroup"});
  asio::io_context io(1);
  TaskGroup tasks(io.get_executor(), [](std::string_view, const std::exception_ptr&) {});
  bool is_known = false;
  tasks.spawn("wait", note_known(users, is_known));
  io.poll();
  EXPECT_FALSE(is_known) << "the name is known, the new group is not";
  directory.answer();
  io.restart();
  io.poll();
  EXPECT_TRUE(is_known);
  EXPECT_EQ(users.groups(kNobody, {}).size(), 1U);
}

}  // namespace
}  // namespace score::head
