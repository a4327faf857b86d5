#include "base/model/switch_overhead.hpp"

#include <gtest/gtest.h>

namespace score {
namespace {

TEST(SwitchOverhead, PartsAddUpToTheWholeSwitch) {
  const auto network =
      overhead_of({.woke = 40us, .stopped = 55us, .restored = 355us, .done = 370us});
  EXPECT_EQ(network, (SwitchOverhead{40us, 15us, 300us, 15us}));
  EXPECT_EQ(network.total(), 370us);
  const auto bare = overhead_of({.woke = 40us, .stopped = 55us, .restored = 0us, .done = 70us});
  EXPECT_EQ(bare, (SwitchOverhead{40us, 15us, 0us, 15us}));
  EXPECT_EQ(bare.total(), 70us);
}

TEST(SwitchOverhead, NamedPartsAreAllParts) {
  const SwitchOverhead overhead{1us, 20us, 300us, 4000us};
  Duration sum{0};
  for (const auto& [name, part] : kOverheadParts) sum += overhead.*part;
  EXPECT_EQ(sum, overhead.total());
}

TEST(SwitchOverhead, ShareNeedsAScheduledJob) {
  EXPECT_FALSE(share_of(1ms, 0s));
  EXPECT_DOUBLE_EQ(*share_of(1ms, 100ms), 0.01);
  EXPECT_DOUBLE_EQ(*share_of(2s, 1s), 1);
  EXPECT_DOUBLE_EQ(*share_of(-1s, 1s), 0);
}

TEST(SwitchOverhead, LatenessDependsOnTheSlice) {
  EXPECT_FALSE(is_late(5ms, 100ms));
  EXPECT_TRUE(is_late(5ms + 1ns, 100ms));
  EXPECT_TRUE(is_late(51us, 1ms));
  EXPECT_FALSE(is_late(1h, 0s)) << "no boundary follows";
}

}  // namespace
}  // namespace score
