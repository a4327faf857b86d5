#include "gang/node/watch_pace.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

SwitchPlan turns(std::size_t count, Duration slice) {
  SwitchPlan plan;
  plan.cycle = static_cast<std::int64_t>(count) * slice;
  plan.segments.resize(count);
  for (auto& segment : plan.segments) segment.jobs = {AttemptId{1}};
  return plan;
}

TEST(WatchPace, WithoutOthersChecksAreSlow) {
  EXPECT_EQ(pace_of({}), WatchPace{});
}

TEST(WatchPace, BackgroundIsCheckedTwicePerSliceWithinLimits) {
  EXPECT_EQ(pace_of(turns(1, 100ms)).background, 50ms);
  EXPECT_EQ(pace_of(turns(1, 2ms)).background, 5ms);
  EXPECT_EQ(pace_of(turns(1, 10s)).background, 500ms);
  EXPECT_EQ(pace_of(turns(1, 100ms)).slice, 0ms) << "no attempts take turns";
}

TEST(WatchPace, ShortSlicesAreCheckedAtTheirEnd) {
  EXPECT_EQ(pace_of(turns(2, 16ms)).in_slice, 2ms);
  EXPECT_EQ(pace_of(turns(2, 16ms)).middle, 8ms);
  EXPECT_EQ(pace_of(turns(2, 8ms)).in_slice, 0ms);
  EXPECT_EQ(pace_of(turns(2, 8ms)).slice, 8ms);
}

}  // namespace
}  // namespace score::gang
