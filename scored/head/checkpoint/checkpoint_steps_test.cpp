#include "scored/head/checkpoint/checkpoint_steps.hpp"

#include <gtest/gtest.h>

namespace score::head {
namespace {

TEST(CheckpointSteps, SaveEndsWithRunningOrEndedJob) {
  EXPECT_EQ(next_step(wire::HOLD, false, false), wire::SAVE);
  EXPECT_EQ(next_step(wire::SAVE, false, false), wire::COMPLETE);
  EXPECT_EQ(next_step(wire::COMPLETE, false, false), wire::GO_ON);
  EXPECT_EQ(next_step(wire::COMPLETE, false, true), wire::END);
}

TEST(CheckpointSteps, FailedStepLetsJobGoOn) {
  EXPECT_EQ(next_step(wire::HOLD, true, true), wire::ABANDON);
  EXPECT_EQ(next_step(wire::SAVE, true, true), wire::ABANDON);
}

TEST(CheckpointSteps, ImagesStayIfCompletionIsUncertain) {
  EXPECT_EQ(next_step(wire::COMPLETE, true, true), wire::GO_ON);
}

}  // namespace
}  // namespace score::head
