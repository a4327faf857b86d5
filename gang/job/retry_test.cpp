#include "gang/job/retry.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

constexpr std::uint32_t kMost = 3;

TEST(Retry, FaultOfTheJobIsNeverRepeated) {
  for (const bool has_run : {false, true}) {
    for (const bool may_restart : {false, true}) {
      EXPECT_EQ(retry_after({Fault::Job, has_run, may_restart, 0, 0}, kMost), Retry::None);
    }
  }
}

TEST(Retry, LaunchIsRepeatedUpToTheLimit) {
  for (std::uint32_t launches = 0; launches < kMost; ++launches) {
    EXPECT_EQ(retry_after({Fault::Machine, false, false, launches, 0}, kMost), Retry::Launch);
  }
  EXPECT_EQ(retry_after({Fault::Machine, false, false, kMost, 0}, kMost), Retry::None);
  EXPECT_EQ(retry_after({Fault::Machine, false, false, 0, 0}, 0), Retry::None);
}

TEST(Retry, JobThatRanRestartsOnlyIfItMay) {
  EXPECT_EQ(retry_after({Fault::Machine, true, false, 0, 0}, kMost), Retry::None);
  EXPECT_EQ(retry_after({Fault::Machine, true, true, kMost, kMost - 1}, kMost), Retry::Restart);
  EXPECT_EQ(retry_after({Fault::Machine, true, true, 0, kMost}, kMost), Retry::None);
}

TEST(Retry, RestartFollowsTheLastLaunch) {
  EXPECT_EQ(retry_after({Fault::Machine, false, true, kMost, 0}, kMost), Retry::Restart);
}

}  // namespace
}  // namespace score::gang
