#include "gang/node/fill_meter.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

TEST(FillMeter, AnAttemptThatUsesAllLeavesNothing) {
  FillMeter meter;
  EXPECT_TRUE(meter.leaves_time());
  meter.add(100ms, 99ms, false);
  EXPECT_FALSE(meter.leaves_time());
}

TEST(FillMeter, WhatFillersTookIsNotLeft) {
  FillMeter meter(2);
  meter.add(100ms, 192ms, true);
  EXPECT_FALSE(meter.leaves_time());
  meter.add(100ms, 175ms, false);
  EXPECT_FALSE(meter.leaves_time());
  meter.add(100ms, 150ms, false);
  EXPECT_TRUE(meter.leaves_time());
  meter.add(100ms, 150ms, true);
  EXPECT_TRUE(meter.leaves_time());
}

TEST(FillMeter, HalfOfShortTurnsIsLeft) {
  FillMeter meter;
  for (int i = 0; i < 16; ++i) meter.add(10ms, 5ms, true);
  EXPECT_TRUE(meter.leaves_time());
  for (int i = 0; i < 3; ++i) meter.add(10ms, 10ms, false);
  EXPECT_TRUE(meter.leaves_time()) << "judged together";
  meter.add(10ms, 10ms, false);
  EXPECT_FALSE(meter.leaves_time());
}

TEST(FillMeter, WithoutCoresItHasOne) {
  FillMeter meter(0);
  meter.add(100ms, 99ms, false);
  EXPECT_FALSE(meter.leaves_time());
}

}  // namespace
}  // namespace score::gang
