#include "gang/control/beat_sender.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;
using Actions = BeatSender::Actions;

constexpr TimePoint kStart{1h};

class BeatSenderTest : public ::testing::Test {
 protected:
  // Returns the beats that are sent until `end` while no member answers.
  std::vector<Actions::Beat> run_until(TimePoint end) {
    std::vector<Actions::Beat> beats;
    while (sender_.next_deadline() <= end) {
      now_ = sender_.next_deadline();
      const Actions actions = sender_.advance(now_);
      if (actions.beat) beats.push_back(*actions.beat);
      if (actions.beat_by_tls) by_tls_.push_back(now_ - kStart);
      if (actions.doubts) doubts_.push_back(now_ - kStart);
    }
    now_ = end;
    return beats;
  }

  // Runs rounds in which only `server` answers, at once.
  void serve_until(TimePoint end, Position server, std::optional<Position> go_back = {}) {
    while (sender_.next_deadline() <= end) {
      now_ = sender_.next_deadline();
      const Actions actions = sender_.advance(now_);
      if (actions.beat_by_tls) by_tls_.push_back(now_ - kStart);
      if (actions.doubts) doubts_.push_back(now_ - kStart);
      if (!actions.beat) continue;
      asked_.push_back(actions.beat->to);
      if (actions.beat->to != server) continue;
      EXPECT_TRUE(sender_.answered(server, {actions.beat->sent, is_linked_, go_back}, now_));
    }
    now_ = end;
  }

  const Tree deep_{15, 2};  // 0; 1 {2 {3 4}, 5 {6 7}}, 8 ...
  BeatTiming timing_;
  BeatSender sender_{deep_, 4, timing_, kStart};
  TimePoint now_ = kStart;
  bool is_linked_ = true;
  std::vector<Duration> by_tls_, doubts_;
  std::vector<Position> asked_;
};

TEST_F(BeatSenderTest, BeatsOncePerPeriodWhileParentAnswers) {
  serve_until(kStart + 10 * timing_.period - 1ns, 2);
  EXPECT_EQ(asked_, std::vector<Position>(10, 2));
  EXPECT_TRUE(by_tls_.empty());
  EXPECT_TRUE(sender_.is_linked());
}

TEST_F(BeatSenderTest, DoubtsOncePerRoundWithoutAnswer) {
  serve_until(kStart + timing_.period - 1ns, 2);
  EXPECT_TRUE(doubts_.empty()) << "as long as it is answered";
  run_until(kStart + 3 * timing_.period - 1ns);
  const Duration after = timing_.tls_after + timing_.doubt_after;
  EXPECT_EQ(doubts_, (std::vector<Duration>{timing_.period + after, 2 * timing_.period + after}));
}

TEST_F(BeatSenderTest, RepeatsALostBeat) {
  const auto beats = run_until(kStart + timing_.retry);
  ASSERT_EQ(beats.size(), 2U);
  EXPECT_EQ(beats[1].to, 2U);
  EXPECT_TRUE(sender_.answered(2, {beats[0].sent, true, {}}, now_));  // late, but still valid
  EXPECT_FALSE(sender_.answered(2, {beats[0].sent, true, {}}, now_));
  EXPECT_FALSE(sender_.answered(2, {beats[1].sent, true, {}}, now_));
}

TEST_F(BeatSenderTest, IsDeafAfterRoundWithoutAnswer) {
  run_until(kStart + 700ms);
  EXPECT_FALSE(sender_.is_deaf()) << "the head may still answer";
  run_until(kStart + timing_.period - 1ns);
  EXPECT_TRUE(sender_.is_deaf());
  serve_until(kStart + timing_.period, 2);
  EXPECT_FALSE(sender_.is_deaf());
  serve_until(kStart + timing_.period + timing_.collect, 2);
  EXPECT_EQ(asked_, (std::vector<Position>{2, 2})) << "the next beat counts again: it comes soon";
}

TEST_F(BeatSenderTest, MovesToGrandparentAtOnceAndStays) {
  serve_until(kStart + 3 * timing_.period, 1);
  EXPECT_EQ(asked_, (std::vector<Position>{2, 2, 2, 2, 1, 1, 1, 1}));
  EXPECT_EQ(sender_.moves(), 1U);
  EXPECT_TRUE(sender_.is_linked());
}

TEST_F(BeatSenderTest, ReturnsToParentOnRequest) {
  serve_until(kStart + timing_.retry * 4, 1, 2);
  asked_.clear();
  serve_until(kStart + 3 * timing_.period, 2);
  EXPECT_EQ(asked_, (std::vector<Position>{2, 2, 2}));
}

TEST_F(BeatSenderTest, FailedReturnToParentIsTriedLessOften) {
  serve_until(kStart + 100 * timing_.period, 1, 2);
  const auto failed = std::count(asked_.begin(), asked_.end(), 2U);
  EXPECT_GT(failed, 4 * 4);
  EXPECT_LT(failed, 4 * 10);
}

TEST_F(BeatSenderTest, BeatsOverTlsInEachRoundWithoutPm) {
  const auto beats = run_until(kStart + 3 * timing_.period - 1ns);
  ASSERT_EQ(by_tls_.size(), 3U);
  EXPECT_EQ(by_tls_[0], timing_.tls_after);
  EXPECT_EQ(by_tls_[1], timing_.period + timing_.tls_after);
  EXPECT_FALSE(sender_.is_linked());
  EXPECT_EQ(beats.size(), 3U * (2U + 2U) * timing_.tries);
  EXPECT_EQ(beats.back().to, 0U);
  EXPECT_EQ(sender_.target(), 2U);
}

TEST_F(BeatSenderTest, ParentWithoutHeadLinkDoesNotReplaceTls) {
  is_linked_ = false;
  serve_until(kStart + 3 * timing_.period - 1ns, 2);
  EXPECT_EQ(by_tls_.size(), 3U);
  EXPECT_FALSE(sender_.is_linked());
  is_linked_ = true;
  serve_until(kStart + 6 * timing_.period - 1ns, 2);
  EXPECT_EQ(by_tls_.size(), 3U);
  EXPECT_TRUE(sender_.is_linked());
}

TEST_F(BeatSenderTest, ChangedSummaryIsSentUpSoon) {
  serve_until(kStart + 100ms, 2);
  sender_.hasten(now_);
  EXPECT_EQ(sender_.next_deadline(), now_ + timing_.collect);
  EXPECT_EQ(run_until(now_ + timing_.collect).size(), 1U);
}

TEST_F(BeatSenderTest, IgnoresUnrequestedAnswers) {
  const auto beats = run_until(kStart);
  ASSERT_EQ(beats.size(), 1U);
  EXPECT_FALSE(sender_.answered(1, {beats[0].sent, true, {}}, now_));
  EXPECT_FALSE(sender_.answered(2, {beats[0].sent + 1ns, true, {}}, now_ + 1ms));
  EXPECT_TRUE(sender_.answered(2, {beats[0].sent, true, 9}, now_));  // not an ancestor, so it stays
  EXPECT_EQ(sender_.target(), 2U);
}

}  // namespace
}  // namespace score::gang
