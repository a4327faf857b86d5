#include "scored/head/jobs/deadlines.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

TimePoint at(int seconds) {
  return TimePoint(std::chrono::seconds(seconds));
}

TEST(Deadlines, ComeDueInOrderAndOnce) {
  Deadlines deadlines;
  deadlines.set(JobId(1), DeadlineKind::Kill, at(5));
  deadlines.set(JobId(2), DeadlineKind::Drop, at(3));
  EXPECT_EQ(deadlines.next(), at(3));
  EXPECT_TRUE(deadlines.take_due(at(2)).empty());
  const std::vector<Deadlines::Due> expected = {{JobId(2), DeadlineKind::Drop},
                                                {JobId(1), DeadlineKind::Kill}};
  EXPECT_EQ(deadlines.take_due(at(5)), expected);
  EXPECT_TRUE(deadlines.take_due(at(9)).empty());
  EXPECT_EQ(deadlines.next(), std::nullopt);
}

TEST(Deadlines, ReplaceEarlierOnesOfTheirKind) {
  Deadlines deadlines;
  deadlines.set(JobId(1), DeadlineKind::FrontEnd, at(5));
  deadlines.set(JobId(1), DeadlineKind::FrontEnd, at(8));
  EXPECT_EQ(deadlines.next(), at(8));
}

TEST(Deadlines, ForgetAJobWithAllItsKinds) {
  Deadlines deadlines;
  deadlines.set(JobId(1), DeadlineKind::FrontEnd, at(5));
  deadlines.set(JobId(1), DeadlineKind::Immediate, at(6));
  deadlines.set(JobId(2), DeadlineKind::Kill, at(7));
  deadlines.clear(JobId(1));
  EXPECT_FALSE(deadlines.has(JobId(1), DeadlineKind::Immediate));
  EXPECT_EQ(deadlines.next(), at(7));
}

}  // namespace
}  // namespace score::head
