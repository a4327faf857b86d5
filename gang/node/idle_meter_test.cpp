#include "gang/node/idle_meter.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using namespace std::chrono_literals;

int checks_until_idle(IdleMeter& meter, Duration ran) {
  for (int checks = 1; checks < 10'000; ++checks) {
    meter.add(ran, 0ns);
    if (meter.is_idle()) return checks;
  }
  return -1;
}

TEST(IdleMeter, IsIdleAfterTwoSlicesWithoutUse) {
  IdleMeter meter;
  EXPECT_FALSE(meter.add(100ms, 0ns));
  EXPECT_FALSE(meter.is_idle());
  EXPECT_TRUE(meter.add(100ms, 900us));
  EXPECT_TRUE(meter.is_idle());
  EXPECT_FALSE(meter.add(100ms, 0ns));
}

TEST(IdleMeter, OneLookWithUseEndsIdleness) {
  IdleMeter meter;
  checks_until_idle(meter, 100ms);
  EXPECT_TRUE(meter.add(50ms, 2ms));
  EXPECT_FALSE(meter.is_idle());
  EXPECT_FALSE(meter.add(50ms, 2ms));
}

TEST(IdleMeter, UseInBetweenRestartsTheCount) {
  IdleMeter meter;
  meter.add(100ms, 0ns);
  meter.add(100ms, 5ms);
  EXPECT_FALSE(meter.add(100ms, 0ns));
  EXPECT_TRUE(meter.add(100ms, 0ns));
}

TEST(IdleMeter, TinySlicesCountOnlyTogether) {
  IdleMeter meter;
  EXPECT_EQ(checks_until_idle(meter, 1ms), 20);
}

TEST(IdleMeter, CostOfSwitchIsNotUse) {
  IdleMeter meter;
  for (int i = 0; i < 20; ++i) meter.add(1ms, 90us);
  EXPECT_TRUE(meter.is_idle());
}

TEST(IdleMeter, ShareWaitingForAProcessorIsNotIdle) {
  IdleMeter meter;
  for (int i = 0; i < 10; ++i) meter.add(100ms, 900us, 90ms);
  EXPECT_FALSE(meter.is_idle());
  EXPECT_FALSE(meter.may_be_idle());
  for (int i = 0; i < 2; ++i) meter.add(100ms, 100us, 5ms);
  EXPECT_TRUE(meter.is_idle()) << "it waited a moment when it was let go";
}

TEST(IdleMeter, RepeatedShortIdlenessNeedsLongerQuiet) {
  IdleMeter meter;
  EXPECT_EQ(checks_until_idle(meter, 10ms), 2);
  int before = 2;
  for (int i = 0; i < 4; ++i) {
    meter.add(50ms, 20ms);
    const int checks = checks_until_idle(meter, 10ms);
    EXPECT_EQ(checks, before * 2);
    before = checks;
  }
  for (int i = 0; i < 10; ++i) {
    meter.add(10ms, 5ms);
    EXPECT_LE(checks_until_idle(meter, 10ms), 2 * static_cast<int>(IdleMeter::kMaxQuietFactor));
  }
}

TEST(IdleMeter, LongRestResetsTheQuietTime) {
  IdleMeter meter;
  checks_until_idle(meter, 10ms);
  meter.add(10ms, 5ms);
  EXPECT_EQ(checks_until_idle(meter, 10ms), 4);
  meter.add(10ms, 5ms);
  EXPECT_EQ(checks_until_idle(meter, 10ms), 8);
  meter.add(200ms, 0ns);
  meter.add(10ms, 5ms);
  EXPECT_EQ(checks_until_idle(meter, 10ms), 2);
}

TEST(IdleMeter, QuarterOfShortSliceIsEnoughRest) {
  for (const Duration slice : {0ms, 10ms, 20ms, 40ms, 1000ms}) {
    IdleMeter meter;
    meter.set_slice(slice);
    const Duration least = slice == 0ms ? 20ms : std::clamp<Duration>(slice / 4, 3500us, 20ms);
    EXPECT_EQ(checks_until_idle(meter, 1ms), (least + 999us) / 1ms);
  }
}

TEST(IdleMeter, OnlyLowUseIsLookedAtAgain) {
  IdleMeter meter;
  meter.add(100ms, 99ms);
  EXPECT_FALSE(meter.may_be_idle());
  meter.add(100ms, 60ms);
  EXPECT_TRUE(meter.may_be_idle());
}

// If 64 ranks share two cores, an active one computes 2 % of its time. It waits for a core for a
// quarter of the time, and for other ranks for the rest.
TEST(IdleMeter, BusyShareOnCrowdedNodeIsNotRechecked) {
  IdleMeter meter;
  meter.add(100ms, 2ms, 20ms);
  EXPECT_FALSE(meter.may_be_idle());
  meter.add(100ms, 100us, 20ms);
  EXPECT_TRUE(meter.may_be_idle()) << "it did nothing";
}

}  // namespace
}  // namespace score::gang
