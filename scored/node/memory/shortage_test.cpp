#include "scored/node/memory/shortage.hpp"

#include <gtest/gtest.h>

namespace score::node {
namespace {

using namespace std::chrono_literals;

constexpr Bytes kLeast(1'000);

struct Watch : ShortageWatch {
  Watch() : ShortageWatch(kLeast) {}

  std::optional<base::MemoryReport> at(Duration time, std::uint64_t available,
                                       bool has_parked = false) {
    return note(Bytes(available), has_parked, TimePoint(time));
  }
};

TEST(ShortageWatch, EnoughMemoryIsNotReported) {
  Watch watch;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(watch.at(i * 1s, 1'000));
}

TEST(ShortageWatch, ShortageIsReportedAtOnceAndRepeated) {
  Watch watch;
  const auto first = watch.at(0s, 999);
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->is_short);
  EXPECT_EQ(first->spare, Bytes(0));
  EXPECT_FALSE(watch.at(1s, 10));
  EXPECT_TRUE(watch.at(2s, 10));
}

TEST(ShortageWatch, ShortageEndsWithHalfAsMuchAgain) {
  Watch watch;
  EXPECT_TRUE(watch.at(0s, 0));
  EXPECT_FALSE(watch.at(1s, 1'499));
  EXPECT_TRUE(watch.is_short());
  const auto last = watch.at(1100ms, 1'500);
  ASSERT_TRUE(last);
  EXPECT_FALSE(last->is_short);
  EXPECT_EQ(last->spare, Bytes(500));
  EXPECT_FALSE(watch.at(100s, 1'001));
}

TEST(ShortageWatch, ParkedMemoryIsReasonEnoughToReport) {
  Watch watch;
  const auto first = watch.at(0s, 5'000, true);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->spare, Bytes(4'000));
  EXPECT_FALSE(watch.at(4s, 5'000, true));
  EXPECT_TRUE(watch.at(5s, 5'000, true));
  EXPECT_FALSE(watch.at(50s, 5'000, false));
}

}  // namespace
}  // namespace score::node
