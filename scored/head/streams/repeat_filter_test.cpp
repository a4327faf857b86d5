#include "scored/head/streams/repeat_filter.hpp"

#include <gtest/gtest.h>

#include <random>

namespace score::head {
namespace {

TEST(RepeatFilter, PassesNewBytesAndDropsRepeatedOnes) {
  RepeatFilter filter;
  EXPECT_EQ(filter.arrived(0, 10).drop, 0u);
  EXPECT_EQ(filter.arrived(4, 10).drop, 6u);
  EXPECT_EQ(filter.arrived(0, 5).drop, 5u);
  EXPECT_EQ(filter.arrived(14, 1).drop, 0u);
}

TEST(RepeatFilter, DetectsAGap) {
  RepeatFilter filter;
  EXPECT_TRUE(filter.arrived(1, 1).gap);
  EXPECT_FALSE(filter.arrived(0, 1).gap);
}

TEST(RepeatFilter, SenderStopsAtItsWindow) {
  RepeatFilter filter;
  EXPECT_FALSE(filter.arrived(0, RepeatFilter::kMaxUnacknowledged).overrun);
  EXPECT_TRUE(filter.arrived(RepeatFilter::kMaxUnacknowledged, 1).overrun);
  (void)filter.taken(10);
  EXPECT_FALSE(filter.arrived(RepeatFilter::kMaxUnacknowledged, 10).overrun);
}

TEST(RepeatFilter, SkipsWhatFollowsRefusedBytesUntilTheyCome) {
  RepeatFilter filter;
  EXPECT_EQ(filter.arrived(0, 10).drop, 0u);
  filter.refuse();  // bytes 10 to 19
  EXPECT_FALSE(filter.skips(10));
  EXPECT_TRUE(filter.skips(20));
  const auto skipped = filter.arrived(20, 10);
  EXPECT_EQ(skipped.drop, 10u);
  EXPECT_FALSE(skipped.gap);
  EXPECT_TRUE(filter.arrived(RepeatFilter::kMaxUnacknowledged, 1).overrun);
  EXPECT_EQ(filter.repeated(0, 15), 10u);
  EXPECT_EQ(filter.arrived(0, 15).drop, 10u);
  EXPECT_FALSE(filter.has_refused());
  EXPECT_TRUE(filter.arrived(20, 10).gap);
  EXPECT_EQ(filter.arrived(15, 15).drop, 0u);
}

TEST(RepeatFilter, BrokenLinkEndsRefusal) {
  RepeatFilter filter;
  (void)filter.arrived(0, 10);
  filter.refuse();
  filter.link_lost();
  EXPECT_TRUE(filter.arrived(20, 10).gap);
  EXPECT_EQ(filter.arrived(0, 30).drop, 10u);
}

TEST(RepeatFilter, RestartBeginsAtTheShepherdsOffset) {
  RepeatFilter filter(true);
  const auto verdict = filter.arrived(5000, 10);
  EXPECT_EQ(verdict.drop, 0u);
  EXPECT_EQ(verdict.acknowledge, 0u);
  EXPECT_FALSE(verdict.gap);
  EXPECT_EQ(filter.taken(10), 10u);
}

TEST(RepeatFilter, RepeatsAcknowledgmentsLostWithTheLink) {
  RepeatFilter filter;
  (void)filter.arrived(0, 100);
  EXPECT_EQ(filter.taken(60), 60u);
  filter.link_lost();
  EXPECT_EQ(filter.taken(20), 0u);              // the rest waits for the shepherd's offset
  const auto verdict = filter.arrived(50, 50);  // 10 of the 60 were lost
  EXPECT_EQ(verdict.drop, 50u);
  EXPECT_EQ(verdict.acknowledge, 30u);
  EXPECT_EQ(filter.taken(20), 20u);
}

// This simulates a shepherd with a window, and a link that loses what is in flight when it breaks.
TEST(RepeatFilter, NeverStallsNorRepeatsThroughRandomBreaks) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    constexpr std::uint64_t kSmallWindow = 64;
    RepeatFilter filter;
    std::uint64_t produced = 0, acknowledged = 0, passed = 0, taken = 0;
    for (int step = 0; step < 3000; ++step) {
      if (random() % 20 == 0) {
        filter.link_lost();
        if (produced > acknowledged) {  // the shepherd repeats at once
          const auto verdict = filter.arrived(acknowledged, produced - acknowledged);
          ASSERT_FALSE(verdict.gap);
          passed += produced - acknowledged - verdict.drop;
          acknowledged += verdict.acknowledge;
        }
        continue;
      }
      const std::uint64_t size = std::min<std::uint64_t>(
          random() % 20, produced - passed + kSmallWindow - (produced - acknowledged));
      if (size > 0) {
        const auto verdict = filter.arrived(produced, size);
        ASSERT_EQ(verdict.drop, 0u);
        produced += size;
        passed += size;
        acknowledged += verdict.acknowledge;
      }
      const std::uint64_t take = std::min<std::uint64_t>(random() % 20, passed - taken);
      taken += take;
      const std::uint64_t told = filter.taken(take);
      if (random() % 4 != 0)
        acknowledged += told;
      else if (told > 0)
        filter.link_lost();  // lost in flight, with the link
      ASSERT_EQ(passed, produced);
      ASSERT_LE(acknowledged, taken);
    }
    filter.link_lost();
    acknowledged += filter.taken(passed - taken);
    taken = passed;
    const auto verdict = filter.arrived(acknowledged, produced - acknowledged);
    EXPECT_EQ(acknowledged + verdict.acknowledge, produced) << "seed " << seed;
  }
}

}  // namespace
}  // namespace score::head
