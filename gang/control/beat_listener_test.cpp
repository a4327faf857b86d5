#include "gang/control/beat_listener.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::gang {
namespace {

using namespace std::chrono_literals;
using Ranges = std::vector<PositionRange>;

constexpr TimePoint kStart{1h};

class BeatListenerTest : public ::testing::Test {
 protected:
  void hear(Position from, const SubtreeSummary& summary = {}) {
    EXPECT_TRUE(listener_.hear(from, summary, now_));
  }

  void advance_to(TimePoint end) {
    while (listener_.next_deadline() && *listener_.next_deadline() <= end) {
      now_ = std::max(now_, *listener_.next_deadline());
      listener_.advance(now_);
    }
    now_ = end;
    listener_.advance(now_);
  }

  // Lets each of `some` beat every period until `end`.
  void beat_until(TimePoint end, const std::vector<Position>& some) {
    while (now_ < end) {
      for (const Position p : some) hear(p);
      advance_to(now_ + timing_.period);
    }
  }

  [[nodiscard]] const Ranges& silent() const { return listener_.summary().silent.ranges(); }

  [[nodiscard]] const Ranges& unknown() const { return listener_.summary().unknown.ranges(); }

  const Tree tree_{15, 2};  // 0; 1 {2 {3 4}, 5 {6 7}}, 8 {9 {10 11}, 12 {13 14}}
  BeatTiming timing_;
  TimePoint now_ = kStart;
  BeatListener listener_{tree_, 0, timing_, kStart};
};

TEST_F(BeatListenerTest, AllMembersAreUnknownAtFirst) {
  EXPECT_EQ(unknown(), (Ranges{{1, 15}}));
  EXPECT_TRUE(silent().empty());
  hear(1);
  EXPECT_TRUE(listener_.advance(now_));
  EXPECT_EQ(unknown(), (Ranges{{8, 15}}));
  EXPECT_FALSE(listener_.advance(now_));
}

TEST_F(BeatListenerTest, ChildrenThatNeverBeatBecomeSilent) {
  advance_to(kStart + timing_.silent_after());
  EXPECT_EQ(silent(), (Ranges{{1, 2}, {8, 9}}));
  EXPECT_EQ(unknown(), (Ranges{{2, 8}, {9, 15}}));
  advance_to(kStart + timing_.adopt_after());
  EXPECT_EQ(silent(), (Ranges{{1, 15}}));
  EXPECT_TRUE(unknown().empty());
}

TEST_F(BeatListenerTest, SumsUpReportsOfItsChildren) {
  SubtreeSummary summary;
  summary.silent.add({6, 7});
  summary.unknown.add({3, 4});
  summary.silent.add({12, 13});  // not below the child
  hear(1, summary);
  hear(8);
  listener_.advance(now_);
  EXPECT_EQ(silent(), (Ranges{{6, 7}}));
  EXPECT_EQ(unknown(), (Ranges{{3, 4}}));
  const Positions heard = listener_.heard_through(1);
  EXPECT_EQ(heard.ranges(), (Ranges{{1, 3}, {4, 6}, {7, 8}}));
}

TEST_F(BeatListenerTest, AdoptsChildrenOfSilentChild) {
  beat_until(kStart + 3 * timing_.period, {1, 8});
  const TimePoint died = now_;
  advance_to(died + timing_.period - 10ms);
  hear(2);
  hear(5);
  hear(8);
  advance_to(died + 2 * timing_.period - 10ms);
  EXPECT_EQ(silent(), (Ranges{{1, 2}}));
  beat_until(died + 6 * timing_.period, {2, 5, 8});
  EXPECT_EQ(silent(), (Ranges{{1, 2}}));
  EXPECT_TRUE(unknown().empty());
}

TEST_F(BeatListenerTest, LostSubtreeBecomesSilent) {
  beat_until(kStart + 3 * timing_.period, {1, 8});
  beat_until(now_ + 4 * timing_.period, {8});
  EXPECT_EQ(silent(), (Ranges{{1, 8}}));
}

TEST_F(BeatListenerTest, NearestReportOverridesOthers) {
  SubtreeSummary cannot_hear_2;
  cannot_hear_2.silent.add({2, 5});
  hear(1, cannot_hear_2);
  hear(8);
  SubtreeSummary of_2;
  of_2.silent.add({3, 4});
  hear(2, of_2);
  listener_.advance(now_);
  EXPECT_EQ(silent(), (Ranges{{3, 4}}));
}

TEST_F(BeatListenerTest, SendsAdoptedMemberBackToLivingParent) {
  EXPECT_FALSE(listener_.hear(3, {}, now_)->go_back);
  hear(1);
  EXPECT_EQ(listener_.hear(3, {}, now_)->go_back, 1U);
  hear(2);
  EXPECT_EQ(listener_.hear(3, {}, now_)->go_back, 2U);
  now_ += timing_.silent_after();
  EXPECT_FALSE(listener_.hear(3, {}, now_)->go_back);
}

TEST_F(BeatListenerTest, ForgetsMembersThatReturnedToTheirParent) {
  hear(3);
  EXPECT_EQ(listener_.speakers(), 1U);
  beat_until(kStart + 4 * timing_.period, {1, 8});
  EXPECT_EQ(listener_.speakers(), 2U);
  EXPECT_TRUE(silent().empty());
}

TEST_F(BeatListenerTest, AnswersOnlyMembersBelowIt) {
  BeatListener inner(tree_, 1, timing_, kStart);
  EXPECT_FALSE(inner.hear(0, {}, now_));
  EXPECT_FALSE(inner.hear(1, {}, now_));
  EXPECT_FALSE(inner.hear(8, {}, now_));
  EXPECT_FALSE(inner.hear(UINT32_MAX, {}, now_));
  EXPECT_TRUE(inner.hear(7, {}, now_));
}

TEST_F(BeatListenerTest, SurvivesRandomSummaries) {
  std::minstd_rand source(1);
  const auto chance = [&] { return static_cast<Position>(source()); };
  for (int i = 0; i < 5'000; ++i) {
    SubtreeSummary summary;
    for (unsigned k = chance() % 4; k > 0; --k) {
      const PositionRange range{chance() % 20, chance() % 3 == 0 ? UINT32_MAX : chance() % 20};
      (chance() % 2 == 0 ? summary.silent : summary.unknown).add(range);
    }
    (void)listener_.hear(chance() % 20, summary, now_);
    advance_to(now_ + std::chrono::milliseconds(chance() % 300));
    for (const auto& [begin, end] : silent()) {
      EXPECT_GE(begin, 1U);
      EXPECT_LE(end, 15U);
    }
  }
}

}  // namespace
}  // namespace score::gang
