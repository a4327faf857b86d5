#include "base/model/deadlines.hpp"

#include <gtest/gtest.h>

namespace score::inline base {
namespace {

using namespace std::chrono_literals;

enum class Kind { Launch, Wall };

constexpr JobId kJob{1};
constexpr JobId kOther{2};

TEST(Deadlines, AreTakenInOrderOfTime) {
  Deadlines<Kind> deadlines;
  deadlines.set(kJob, Kind::Wall, TimePoint(3s));
  deadlines.set(kOther, Kind::Launch, TimePoint(2s));
  EXPECT_EQ(deadlines.next(), TimePoint(2s));
  EXPECT_FALSE(deadlines.take_due(TimePoint(1s)));
  EXPECT_EQ(deadlines.take_due(TimePoint(9s))->job, kOther);
  EXPECT_EQ(deadlines.take_due(TimePoint(9s))->kind, Kind::Wall);
  EXPECT_FALSE(deadlines.next());
}

TEST(Deadlines, NewDeadlineReplacesOneOfSameKind) {
  Deadlines<Kind> deadlines;
  deadlines.set(kJob, Kind::Wall, TimePoint(1s));
  deadlines.set(kJob, Kind::Wall, TimePoint(5s));
  EXPECT_EQ(deadlines.next(), TimePoint(5s));
  EXPECT_TRUE(deadlines.take_due(TimePoint(5s)));
  EXPECT_FALSE(deadlines.take_due(TimePoint(5s)));
}

TEST(Deadlines, ClearRemovesDeadlinesOfOneJob) {
  Deadlines<Kind> deadlines;
  deadlines.set(kJob, Kind::Launch, TimePoint(1s));
  deadlines.set(kJob, Kind::Wall, TimePoint(2s));
  deadlines.set(kOther, Kind::Wall, TimePoint(3s));
  EXPECT_TRUE(deadlines.has(kJob, Kind::Wall));
  deadlines.clear(kJob);
  deadlines.clear(kJob);
  EXPECT_FALSE(deadlines.has(kJob, Kind::Wall));
  EXPECT_EQ(deadlines.next(), TimePoint(3s));
}

}  // namespace
}  // namespace score::inline base
