#include "pario/core/quota.hpp"

#include <gtest/gtest.h>

namespace score::pario {
namespace {

TEST(Quota, ReservesUntilFull) {
  Quota quota(100, 40);
  EXPECT_TRUE(quota.reserve(60));
  EXPECT_FALSE(quota.reserve(1));
  quota.settle(60, 0, 10);
  EXPECT_EQ(quota.used(), 50U);
  EXPECT_EQ(quota.free(), 50U);
}

TEST(Quota, ReturnsSpace) {
  Quota quota(100, 40);
  quota.settle(0, 40, 0);
  EXPECT_EQ(quota.used(), 0U);
  quota.settle(10, 5, 0);  // more than is used: never below 0
  EXPECT_EQ(quota.used(), 0U);
  EXPECT_EQ(quota.free(), 100U);
}

TEST(Quota, RefusesNumbersThatOverflow) {
  Quota quota(~std::uint64_t{0}, 10);
  EXPECT_TRUE(quota.reserve(~std::uint64_t{0} - 10));
  EXPECT_FALSE(quota.reserve(~std::uint64_t{0}));
  EXPECT_EQ(quota.free(), 0U);
  EXPECT_EQ(Quota(5, 9).free(), 0U);
}

TEST(Quota, EmptyFilesNeedRoom) {
  Quota quota(10 * kBytesPerFile);
  EXPECT_TRUE(has_room_for_file(quota, 9));
  EXPECT_FALSE(has_room_for_file(quota, 10));
  ASSERT_TRUE(quota.reserve(5 * kBytesPerFile));
  EXPECT_TRUE(has_room_for_file(quota, 9));
  quota.settle(5 * kBytesPerFile, 0, 5 * kBytesPerFile);
  EXPECT_FALSE(has_room_for_file(quota, 5));
}

}  // namespace
}  // namespace score::pario
