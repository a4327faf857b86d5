#include "gang/state/failure_detector.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;
using base::Duration;
using base::NodeId;
using base::TimePoint;

constexpr NodeId kNode{1};

enum class What { Heard, LostLink, Watch, Ask };

struct Step {
  Duration at;
  What what;
  Verdict expected;
};

void run(const std::vector<Step>& steps) {
  FailureDetector detector(2s, 3s);
  detector.watch(kNode, TimePoint{0s});
  for (const Step& step : steps) {
    const TimePoint now{step.at};
    // As the head does: no deadline is missed.
    while (detector.next_deadline() && *detector.next_deadline() <= now) {
      detector.advance(*detector.next_deadline());
    }
    if (step.what == What::Heard) detector.heard(kNode, now);
    if (step.what == What::LostLink) detector.lost_link(kNode, now);
    if (step.what == What::Watch) detector.watch(kNode, now);
    EXPECT_EQ(detector.verdict(kNode), step.expected) << "at " << step.at.count();
  }
}

TEST(FailureDetector, SuspectsAndThenGivesUpWhoIsSilent) {
  run({{1999ms, What::Ask, Verdict::Alive},
       {2000ms, What::Ask, Verdict::Suspect},
       {2999ms, What::Ask, Verdict::Suspect},
       {3000ms, What::Ask, Verdict::Dead}});
}

TEST(FailureDetector, ASignOfLifeClearsASuspect) {
  run({{2500ms, What::Ask, Verdict::Suspect},
       {2600ms, What::Heard, Verdict::Alive},
       {4599ms, What::Ask, Verdict::Alive},
       {4600ms, What::Ask, Verdict::Suspect}});
}

TEST(FailureDetector, ABrokenLinkMakesASuspectAtOnceAndOnlyANewLinkClearsIt) {
  run({{1000ms, What::Heard, Verdict::Alive},
       {1100ms, What::LostLink, Verdict::Suspect},
       {1200ms, What::Heard, Verdict::Suspect},
       {1300ms, What::Watch, Verdict::Alive},
       {1400ms, What::LostLink, Verdict::Suspect},
       {4299ms, What::Ask, Verdict::Suspect},
       {4300ms, What::Ask, Verdict::Dead}});
}

TEST(FailureDetector, TheDeadStayDeadUntilTheyAreWatchedAnew) {
  run({{3000ms, What::Ask, Verdict::Dead},
       {3100ms, What::Heard, Verdict::Dead},
       {3200ms, What::LostLink, Verdict::Dead},
       {3300ms, What::Watch, Verdict::Alive}});
}

TEST(FailureDetector, ExpectedNodesHaveUntilTheirDeadline) {
  FailureDetector detector(2s, 3s);
  detector.expect(kNode, TimePoint{0s}, TimePoint{10s});
  EXPECT_EQ(detector.verdict(kNode), Verdict::Suspect);
  EXPECT_TRUE(detector.advance(TimePoint{9999ms}).empty());
  ASSERT_EQ(detector.advance(TimePoint{10s}).size(), 1U);
  EXPECT_EQ(detector.verdict(kNode), Verdict::Dead);
  EXPECT_FALSE(detector.next_deadline());
}

TEST(FailureDetector, ItsOwnStallIsNotHeldAgainstTheNodes) {
  FailureDetector detector(2s, 3s);
  detector.watch(kNode, TimePoint{0s});
  EXPECT_EQ(detector.advance(TimePoint{60s}).size(), 1U) << "suspect at most";
  EXPECT_EQ(detector.verdict(kNode), Verdict::Suspect);
  EXPECT_TRUE(detector.heard(kNode, TimePoint{60500ms}));
  EXPECT_EQ(detector.verdict(kNode), Verdict::Alive);
}

}  // namespace
}  // namespace score::gang
