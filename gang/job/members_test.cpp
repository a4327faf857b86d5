#include "gang/job/members.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;
using Numbers = std::vector<std::size_t>;

TEST(Members, LastAnswerCompletesTheLaunch) {
  Members members;
  members.ask_all(3);
  EXPECT_FALSE(members.prepared(0));
  EXPECT_FALSE(members.prepared(0)) << "a repeated answer does not count";
  EXPECT_FALSE(members.prepared(2));
  EXPECT_EQ(members.in(Member::Asked), Numbers{1});
  EXPECT_TRUE(members.prepared(1));
}

TEST(Members, MemberWithLostPreparationIsAwaitedAgain) {
  Members members;
  members.ask_all(2);
  members.prepared(0);
  members.ask_again(0);
  members.ask_again(1);
  EXPECT_FALSE(members.prepared(1));
  EXPECT_TRUE(members.prepared(0));
}

TEST(Members, RemainingCountsMembersThatAreNotGone) {
  Members members;
  members.ask_all(2);
  EXPECT_TRUE(members.gone(0));
  EXPECT_FALSE(members.gone(0));
  EXPECT_EQ(members.remaining(), 1U);
  EXPECT_TRUE(members.prepared(1)) << "the lost member's answer is not awaited";
  members.gone(1);
  EXPECT_EQ(members.remaining(), 0U);
}

TEST(Members, StartedMemberBeginsOnce) {
  Members members;
  members.ask_all(2);
  members.start(0, 3s);
  members.start(1, 5s);
  EXPECT_EQ(members.not_begun().size(), 2U);
  EXPECT_EQ(members.start_scheduled(), 5s);
  EXPECT_TRUE(members.began(0));
  EXPECT_FALSE(members.began(0));
  members.gone(1);
  EXPECT_TRUE(members.not_begun().empty());
}

TEST(Members, NoMemberHasBegunAfterHeadRestart) {
  Members members;
  members.assume_started(2);
  EXPECT_EQ(members.in(Member::Started), (Numbers{0, 1}));
  EXPECT_EQ(members.not_begun().size(), 2U);
  EXPECT_EQ(members.remaining(), 2U);
}

}  // namespace
}  // namespace score::gang
