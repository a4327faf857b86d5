#include "gang/node/fill_meter.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

TEST(FillMeter, LeavesNoTimeUntilMeasured) {
  FillMeter meter;
  EXPECT_FALSE(meter.leaves_time());
  meter.add(100ms, 50ms);
  EXPECT_TRUE(meter.leaves_time());
  meter.add(100ms, 99ms);
  EXPECT_FALSE(meter.leaves_time());
}

TEST(FillMeter, TimeTakenByFillersIsNotLeft) {
  FillMeter meter(2);
  meter.add(100ms, 150ms);
  ASSERT_TRUE(meter.leaves_time());
  meter.note_fillers();
  meter.add(100ms, 175ms);
  EXPECT_TRUE(meter.leaves_time());
  meter.note_fillers();
  meter.add(100ms, 192ms);
  EXPECT_FALSE(meter.leaves_time());
  meter.add(100ms, 175ms);
  EXPECT_FALSE(meter.leaves_time()) << "it must leave more before others fill again";
  meter.add(100ms, 150ms);
  EXPECT_TRUE(meter.leaves_time());
}

TEST(FillMeter, ShortTurnsAreJudgedTogether) {
  FillMeter meter;
  for (int i = 0; i < 4; ++i) meter.add(10ms, 5ms);
  EXPECT_TRUE(meter.leaves_time());
  for (int i = 0; i < 3; ++i) meter.add(10ms, 10ms);
  EXPECT_TRUE(meter.leaves_time());
  meter.add(10ms, 10ms);
  EXPECT_FALSE(meter.leaves_time());
}

TEST(FillMeter, ZeroCoresCountAsOne) {
  FillMeter meter(0);
  meter.add(100ms, 99ms);
  EXPECT_FALSE(meter.leaves_time());
  meter.add(100ms, 50ms);
  EXPECT_TRUE(meter.leaves_time());
}

}  // namespace
}  // namespace score::gang
