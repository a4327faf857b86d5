#include "scored/control/relayed_clock.hpp"

#include <gtest/gtest.h>

namespace score::control {
namespace {

using namespace std::chrono_literals;
using base::Duration;
using base::TimePoint;

constexpr TimePoint kNow{1h};

// Returns an exchange of 200 us that ends at `at`, with a clock that is `offset` ahead.
gang::ClockSample sample(TimePoint at, Duration offset, Duration error = 0us) {
  return {at - 200us, at - 100us + offset, at - 100us + offset, at, error};
}

TEST(RelayedClock, SampleWithinBothBoundsDoesNotContradict) {
  gang::ClockFilter clock;
  ASSERT_TRUE(clock.add(sample(kNow, 5s)));
  EXPECT_FALSE(contradicts(clock, sample(kNow + 1s, 5s + 150us, 100us)));
}

TEST(RelayedClock, OtherTimeContradicts) {
  gang::ClockFilter clock;
  ASSERT_TRUE(clock.add(sample(kNow, 5s)));
  EXPECT_TRUE(contradicts(clock, sample(kNow + 1s, 5s + 2ms, 100us)));
  EXPECT_TRUE(contradicts(clock, sample(kNow + 1s, 4s, 100us)));
}

TEST(RelayedClock, UnsynchronisedClockIsNotContradicted) {
  gang::ClockFilter clock;
  EXPECT_FALSE(contradicts(clock, sample(kNow, 5s)));
  ASSERT_TRUE(clock.add(sample(kNow, 5s)));
  clock.restart();
  EXPECT_FALSE(contradicts(clock, sample(kNow + 1s, 9s)));
}

}  // namespace
}  // namespace score::control
