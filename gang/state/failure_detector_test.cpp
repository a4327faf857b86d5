#include "gang/state/failure_detector.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;
using base::Duration;
using base::NodeId;
using base::TimePoint;

constexpr NodeId kNode{1};

constexpr FailureDetector::Limits kLimits{
    .suspect_after = 3s, .dead_after = 30s, .reconnect_grace = 2s};

enum class What { Heard, LostLink, Watch, Ask };

struct Step {
  Duration at;
  What what;
  Verdict expected;
};

void run(const std::vector<Step>& steps) {
  FailureDetector detector(kLimits);
  detector.watch(kNode, TimePoint{0s});
  for (const Step& step : steps) {
    const TimePoint now{step.at};
    // No deadline is missed, as in the head.
    while (detector.next_deadline() && *detector.next_deadline() <= now) {
      detector.advance(*detector.next_deadline());
    }
    if (step.what == What::Heard) detector.heard(kNode, now);
    if (step.what == What::LostLink) detector.lost_link(kNode, now);
    if (step.what == What::Watch) detector.watch(kNode, now);
    EXPECT_EQ(detector.verdict(kNode), step.expected) << "at " << step.at.count();
  }
}

TEST(FailureDetector, SilentNodeIsSuspectLongBeforeDead) {
  run({{2999ms, What::Ask, Verdict::Alive},
       {3000ms, What::Ask, Verdict::Suspect},
       {29999ms, What::Ask, Verdict::Suspect},
       {30000ms, What::Ask, Verdict::Dead}});
}

TEST(FailureDetector, SignOfLifeClearsSuspicion) {
  run({{20000ms, What::Ask, Verdict::Suspect},
       {20100ms, What::Heard, Verdict::Alive},
       {23099ms, What::Ask, Verdict::Alive},
       {23100ms, What::Ask, Verdict::Suspect},
       {50099ms, What::Ask, Verdict::Suspect},
       {50100ms, What::Ask, Verdict::Dead}});
}

TEST(FailureDetector, DeafNodeIsSuspectUntilItHears) {
  FailureDetector detector(kLimits);
  detector.watch(kNode, TimePoint{0s});
  EXPECT_TRUE(detector.deaf(kNode, TimePoint{1s}));
  EXPECT_EQ(detector.verdict(kNode), Verdict::Suspect);
  EXPECT_FALSE(detector.deaf(kNode, TimePoint{1500ms})) << "known";
  EXPECT_FALSE(detector.heard(kNode, TimePoint{2s})) << "what it says still arrives";
  EXPECT_FALSE(detector.vouched(kNode, TimePoint{2s}));
  detector.hears(kNode);
  EXPECT_TRUE(detector.heard(kNode, TimePoint{2100ms}));
  EXPECT_EQ(detector.verdict(kNode), Verdict::Alive);
}

TEST(FailureDetector, DeafnessExpiresWithoutRepetition) {
  FailureDetector detector(kLimits);
  detector.watch(kNode, TimePoint{0s});
  EXPECT_TRUE(detector.deaf(kNode, TimePoint{1s}));
  EXPECT_FALSE(detector.heard(kNode, TimePoint{1s} + kLimits.deaf_for - 1ns));
  EXPECT_TRUE(detector.heard(kNode, TimePoint{1s} + kLimits.deaf_for));
  EXPECT_TRUE(detector.deaf(kNode, TimePoint{6s}));
  const auto changes = detector.advance(TimePoint{1s} + kLimits.deaf_for + kLimits.dead_after);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes.front().verdict, Verdict::Dead);
  EXPECT_FALSE(detector.deaf(kNode, TimePoint{60s})) << "it is dead";
}

TEST(FailureDetector, AnnouncedBreakKeepsTheFullTimeout) {
  FailureDetector detector(kLimits);
  detector.watch(kNode, TimePoint{0s});
  detector.heard(kNode, TimePoint{1s});
  EXPECT_TRUE(detector.lost_link(kNode, TimePoint{1s}, true));
  EXPECT_EQ(detector.verdict(kNode), Verdict::Suspect);
  detector.advance(TimePoint{30'999ms});
  EXPECT_EQ(detector.verdict(kNode), Verdict::Suspect);
  while (detector.next_deadline()) detector.advance(*detector.next_deadline());
  EXPECT_EQ(detector.verdict(kNode), Verdict::Dead);
}

TEST(FailureDetector, BrokenLinkMakesNodeSuspectUntilNewLink) {
  run({{1000ms, What::Heard, Verdict::Alive},
       {1100ms, What::LostLink, Verdict::Suspect},
       {1200ms, What::Heard, Verdict::Suspect},
       {1300ms, What::Watch, Verdict::Alive},
       {1400ms, What::LostLink, Verdict::Suspect},
       {3399ms, What::Ask, Verdict::Suspect},
       {3400ms, What::Ask, Verdict::Dead}});
}

TEST(FailureDetector, BreakOfSilentLinkKeepsTheTimeout) {
  run({{10000ms, What::LostLink, Verdict::Suspect},
       {29999ms, What::Ask, Verdict::Suspect},
       {30000ms, What::Ask, Verdict::Dead}});
  run({{29000ms, What::LostLink, Verdict::Suspect},
       {30999ms, What::Ask, Verdict::Suspect},
       {31000ms, What::Ask, Verdict::Dead}});
}

TEST(FailureDetector, ReportsByOthersCanBeDenied) {
  FailureDetector detector(kLimits);
  detector.watch(kNode, TimePoint{0s});
  detector.heard(kNode, TimePoint{2s});
  detector.vouched(kNode, TimePoint{4s});
  detector.denied(kNode, TimePoint{1s});
  EXPECT_TRUE(detector.advance(TimePoint{4900ms}).empty());
  const auto changes = detector.advance(TimePoint{5s});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].silent, 3s);

  EXPECT_TRUE(detector.vouched(kNode, TimePoint{6s}));
  detector.denied(kNode, TimePoint{7s});  // not heard at that time, but at 6 s
  EXPECT_EQ(detector.next_deadline(), TimePoint{9s});
}

TEST(FailureDetector, ReportsByOthersCountForLimitedTime) {
  FailureDetector detector({3s, 30s, 2s, 10s});
  detector.watch(kNode, TimePoint{0s});
  for (Duration at = 1s; at <= 12s; at += 1s) {
    EXPECT_FALSE(detector.vouched(kNode, TimePoint{at}));
    EXPECT_TRUE(detector.advance(TimePoint{at}).empty());
  }
  EXPECT_EQ(detector.next_deadline(), TimePoint{13s}) << "10 s and the 3 s of any silence";
  EXPECT_EQ(detector.advance(TimePoint{13s}).size(), 1U);
  EXPECT_FALSE(detector.vouched(kNode, TimePoint{14s}));
  EXPECT_EQ(detector.verdict(kNode), Verdict::Suspect);
  EXPECT_TRUE(detector.heard(kNode, TimePoint{15s}));
  EXPECT_FALSE(detector.vouched(kNode, TimePoint{20s}));
  EXPECT_TRUE(detector.advance(TimePoint{22s}).empty());
}

TEST(FailureDetector, DeadNodesStayDeadUntilWatchedAgain) {
  run({{30000ms, What::Ask, Verdict::Dead},
       {30100ms, What::Heard, Verdict::Dead},
       {30200ms, What::LostLink, Verdict::Dead},
       {30300ms, What::Watch, Verdict::Alive}});
}

TEST(FailureDetector, ExpectedNodesHaveUntilTheirDeadline) {
  FailureDetector detector(kLimits);
  detector.expect(kNode, TimePoint{0s}, TimePoint{10s});
  EXPECT_EQ(detector.verdict(kNode), Verdict::Suspect);
  EXPECT_TRUE(detector.advance(TimePoint{9999ms}).empty());
  ASSERT_EQ(detector.advance(TimePoint{10s}).size(), 1U);
  EXPECT_EQ(detector.verdict(kNode), Verdict::Dead);
  EXPECT_FALSE(detector.next_deadline());
}

TEST(FailureDetector, OwnStallIsNotCountedAsSilence) {
  FailureDetector detector(kLimits);
  detector.watch(kNode, TimePoint{0s});
  EXPECT_EQ(detector.advance(TimePoint{60s}).size(), 1U) << "suspect at most";
  EXPECT_EQ(detector.verdict(kNode), Verdict::Suspect);
  EXPECT_TRUE(detector.heard(kNode, TimePoint{60500ms}));
  EXPECT_EQ(detector.verdict(kNode), Verdict::Alive);
}

}  // namespace
}  // namespace score::gang
