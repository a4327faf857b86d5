#include "gang/state/deadlines.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

using base::JobId;
using base::TimePoint;
using namespace std::chrono_literals;

constexpr JobId kJob{1};
constexpr JobId kOther{2};

TEST(Deadlines, AreTakenInOrderOfTime) {
  Deadlines deadlines;
  deadlines.set(kJob, DeadlineKind::Wall, TimePoint(3s));
  deadlines.set(kOther, DeadlineKind::Launch, TimePoint(2s));
  EXPECT_EQ(deadlines.next(), TimePoint(2s));
  EXPECT_FALSE(deadlines.take_due(TimePoint(1s)));
  EXPECT_EQ(deadlines.take_due(TimePoint(9s))->job, kOther);
  EXPECT_EQ(deadlines.take_due(TimePoint(9s))->kind, DeadlineKind::Wall);
  EXPECT_FALSE(deadlines.next());
}

TEST(Deadlines, NewDeadlineReplacesOneOfSameKind) {
  Deadlines deadlines;
  deadlines.set(kJob, DeadlineKind::Kill, TimePoint(1s));
  deadlines.set(kJob, DeadlineKind::Kill, TimePoint(5s));
  EXPECT_EQ(deadlines.next(), TimePoint(5s));
  EXPECT_TRUE(deadlines.take_due(TimePoint(5s)));
  EXPECT_FALSE(deadlines.take_due(TimePoint(5s)));
}

TEST(Deadlines, ClearRemovesDeadlinesOfOneJob) {
  Deadlines deadlines;
  deadlines.set(kJob, DeadlineKind::Launch, TimePoint(1s));
  deadlines.set(kJob, DeadlineKind::Idle, TimePoint(2s));
  deadlines.set(kOther, DeadlineKind::Idle, TimePoint(3s));
  deadlines.clear(kJob);
  deadlines.clear(kJob);
  EXPECT_EQ(deadlines.next(), TimePoint(3s));
}

}  // namespace
}  // namespace score::gang
