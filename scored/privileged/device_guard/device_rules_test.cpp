#include "scored/privileged/device_guard/device_rules.hpp"

#include <gtest/gtest.h>

namespace score::device_guard {
namespace {

constexpr std::string_view kDrivers =
    "Character devices:\n  1 mem\n136 pts\n195 nvidia\n195 nvidia-frontend\n231 infiniband_verbs\n"
    "\nBlock devices:\n  7 loop\n259 blkext\n195 nvidia\n";

using Rules = std::vector<DeviceRule>;

TEST(DeviceRules, FindDriversByNameAndKind) {
  EXPECT_EQ(resolve("char-nvidia", kDrivers), (Rules{{false, 195, std::nullopt}}));
  EXPECT_EQ(resolve("block-nvidia", kDrivers), (Rules{{true, 195, std::nullopt}}));
  EXPECT_EQ(resolve("block-loop", kDrivers), (Rules{{true, 7, std::nullopt}}));
  EXPECT_EQ(resolve("char-loop", kDrivers), Rules{});
  EXPECT_EQ(resolve("char-", kDrivers), Rules{});
}

TEST(DeviceRules, FindDevicesByPath) {
  EXPECT_EQ(resolve("/dev/null", ""), (Rules{{false, 1, 3}}));
  EXPECT_EQ(resolve("/dev/nul[l]", ""), (Rules{{false, 1, 3}}));
  EXPECT_EQ(resolve("/dev/no-such-*", ""), Rules{});
  EXPECT_EQ(resolve("/dev/../etc/passwd", ""), Rules{}) << "no device";
}

TEST(DeviceRules, ReadNumbers) {
  EXPECT_EQ(parse_rule("c195:0"), (DeviceRule{false, 195, 0}));
  EXPECT_EQ(parse_rule("b7:1"), (DeviceRule{true, 7, 1}));
  for (const char* text :
       {"", "c", ":", "c:", "c1", "c1:", "c:1", "d1:1", "c-1:1", "c1:1:1", "c99999999999:1"}) {
    EXPECT_FALSE(parse_rule(text)) << text;
  }
}

}  // namespace
}  // namespace score::device_guard
