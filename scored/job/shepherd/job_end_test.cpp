#include "scored/job/shepherd/job_end.hpp"

#include <gtest/gtest.h>

namespace score::shepherd {
namespace {

using namespace std::chrono_literals;

const base::TimePoint kStart{100s};

TEST(LeftoverKill, RepeatsUntilNoneIsLeftOrGraceEnds) {
  const LeftoverKill kill(kStart);
  EXPECT_FALSE(kill.must_go_on(0, kStart));
  EXPECT_TRUE(kill.must_go_on(1, kStart));
  EXPECT_TRUE(kill.must_go_on(1, kStart + LeftoverKill::kGrace - 1ms));
  EXPECT_FALSE(kill.must_go_on(1, kStart + LeftoverKill::kGrace));
}

TEST(LostDaemon, GivesUpAfterSeveralUnreachableChecks) {
  LostDaemon lost(kStart);
  EXPECT_FALSE(lost.check(true, false, kStart));
  EXPECT_FALSE(lost.check(true, false, kStart));
  EXPECT_FALSE(lost.check(false, false, kStart)) << "it was there again";
  EXPECT_FALSE(lost.check(true, false, kStart));
  EXPECT_FALSE(lost.check(true, false, kStart));
  EXPECT_TRUE(lost.check(true, false, kStart));
}

TEST(LostDaemon, KeepsRunningJobLongerThanDoneJob) {
  LostDaemon lost(kStart);
  const auto later = kStart + LostDaemon::kDoneLinger + 1ms;
  EXPECT_FALSE(lost.check(false, false, later));
  EXPECT_FALSE(lost.check(false, true, kStart + LostDaemon::kDoneLinger));
  EXPECT_TRUE(lost.check(false, true, later));
}

}  // namespace
}  // namespace score::shepherd
