#include "gang/control/tree_verdicts.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;
using Ranges = std::vector<PositionRange>;

constexpr TimePoint kStart{1h};

TEST(TreeVerdicts, BeatReportsItsSubtreeAsAlive) {
  const Tree tree(15, 2);  // 0; 1 {2 {3 4}, 5 {6 7}}, 8 {9 {10 11}, 12 {13 14}}
  TreeVerdicts verdicts(tree, {}, kStart);
  TreeVerdicts::Findings findings;
  SubtreeSummary summary;
  summary.silent.add({6, 7});
  ASSERT_TRUE(verdicts.hear(1, summary, kStart + 1ms, findings));
  EXPECT_EQ(findings.alive.ranges(), (Ranges{{1, 6}, {7, 8}}));
  EXPECT_EQ(findings.silent.ranges(), (Ranges{{6, 7}}));
  findings = {};
  EXPECT_FALSE(verdicts.hear(0, {}, kStart + 2ms, findings));
  ASSERT_TRUE(verdicts.hear(1, summary, kStart + 2ms, findings));
  EXPECT_TRUE(findings.silent.empty());
}

TEST(TreeVerdicts, MembersBelowSilentMemberGetTimeToBeat) {
  const Tree tree(15, 2);
  const BeatTiming timing;
  TreeVerdicts verdicts(tree, timing, kStart);
  TreeVerdicts::Findings findings;
  ASSERT_TRUE(verdicts.hear(1, {}, kStart, findings));
  ASSERT_TRUE(verdicts.hear(8, {}, kStart + 1s, findings));

  findings = {};
  verdicts.advance(kStart + timing.silent_after(), findings);
  EXPECT_EQ(findings.silent.ranges(), (Ranges{{1, 2}}));
  EXPECT_EQ(findings.alive.ranges(), (Ranges{{2, 8}}));

  ASSERT_TRUE(verdicts.hear(5, {}, kStart + timing.adopt_after() - 1s, findings));
  ASSERT_TRUE(verdicts.hear(8, {}, kStart + timing.adopt_after() - 1s, findings));
  findings = {};
  verdicts.advance(kStart + timing.adopt_after(), findings);
  EXPECT_EQ(findings.silent.ranges(), (Ranges{{2, 5}}));
  EXPECT_TRUE(findings.alive.empty());
}

}  // namespace
}  // namespace score::gang
