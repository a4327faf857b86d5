#include "tests/support/node/fake_node.hpp"

#include <gtest/gtest.h>

#include <array>

namespace score::node {
namespace {

using namespace test;

SwitchPlan filled_turns(TimePoint start, std::vector<std::uint64_t> fill) {
  SwitchPlan plan = turns(start);
  plan.fill = ids(std::move(fill));
  return plan;
}

// Has attempts 1 and 2, which leave time.
struct SleepyNode : Node {
  std::array<Duration, 2> used{};
  FakeTarget& first = add_sleeper(1, used[0]);
  FakeTarget& second = add_sleeper(2, used[1]);
};

TEST(SwitchFill, FillerRunsOnAtIdlePriority) {
  SleepyNode node;
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  EXPECT_EQ(node.first.role(), Role::Runs);
  EXPECT_EQ(node.second.role(), Role::Fills);
  node.step(TimePoint{1100ms});
  EXPECT_EQ(node.first.role(), Role::Fills);
  EXPECT_EQ(node.second.role(), Role::Runs);
  EXPECT_EQ(node.first.stops + node.second.stops, 0);
  EXPECT_EQ(node.entries[0]->clock.read(TimePoint{5s}), 100ms) << "only its turns";
  const auto records = node.trace.read(TimePoint{}).records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].filling_count, 1U);
  EXPECT_EQ(records[1].filling[0], AttemptId{1});
  EXPECT_EQ(records[1].left[0], AttemptId{1});
}

TEST(SwitchFill, NothingFillsWithoutTheConsentOfBoth) {
  for (const std::vector<std::uint64_t>& fill : {std::vector<std::uint64_t>{1}, {2}, {}}) {
    SleepyNode node;
    node.follow({filled_turns(TimePoint{1s}, fill)});
    node.step(TimePoint{1s});
    EXPECT_EQ(node.second.role(), Role::Stopped);
    node.step(TimePoint{1100ms});
    EXPECT_EQ(node.first.role(), Role::Stopped);
  }
}

TEST(SwitchFill, AttemptWithoutPriorityControlIsStopped) {
  Node node;
  const Duration used{0};
  node.add_sleeper(1, used);
  auto& second = node.add_sleeper(2, used, false);
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  EXPECT_EQ(second.role(), Role::Stopped);
}

TEST(SwitchFill, AttemptsThatShareAChannelDoNotFill) {
  SleepyNode node;
  SharedChannel channel(node);
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.program->networks = channel.users;
  node.program->find_shared_channels();
  node.follower.take(node.program.get());
  node.step(TimePoint{1s});
  EXPECT_EQ(node.second.role(), Role::Stopped);
  node.program->networks[0] = nullptr;
  node.program->find_shared_channels();
  node.follower.take(node.program.get());
  node.step(TimePoint{1s});
  EXPECT_EQ(node.second.role(), Role::Fills);
}

TEST(SwitchFill, NothingFillsIfGangUsesAllTime) {
  SleepyNode node;
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  ASSERT_EQ(node.second.role(), Role::Fills);
  node.used[0] += 97ms;
  node.used[1] += 3ms;
  node.step(TimePoint{1100ms});
  EXPECT_EQ(node.first.role(), Role::Fills);
  node.used[0] += 50ms;
  node.used[1] += 50ms;
  node.step(TimePoint{1200ms});
  EXPECT_EQ(node.second.role(), Role::Stopped);
  EXPECT_EQ(node.entries[0]->account.read(node.entries[0]->watch), 50ms);
  EXPECT_EQ(node.entries[1]->account.read(node.entries[1]->watch), 3ms);
  node.used[0] += 50ms;
  node.step(TimePoint{1300ms});
  node.used[1] += 50ms;
  node.step(TimePoint{1400ms});
  EXPECT_EQ(node.second.role(), Role::Fills) << "it leaves time again";
}

TEST(SwitchFill, UnmeasuredAttemptLeavesNoTime) {
  Node node;
  auto& second = (node.add(1), node.add(2));
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  for (Duration at = 1s; at < 2s; at += 100ms) node.step(TimePoint{at});
  node.step(TimePoint{2s});
  EXPECT_EQ(second.role(), Role::Stopped);
}

TEST(SwitchFill, ReleasedFillerHasNormalPriority) {
  SleepyNode node;
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  ASSERT_EQ(node.second.role(), Role::Fills);
  node.follower.release();
  EXPECT_EQ(node.second.role(), Role::Runs);
}

TEST(SwitchFill, StoppedFillerIsRaisedBeforeItContinues) {
  SleepyNode node;
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  const auto before = std::move(node.program);
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1050ms});
  EXPECT_EQ(node.second.role(), Role::Stopped);
  EXPECT_TRUE(node.second.is_low);
  node.step(TimePoint{1100ms});
  EXPECT_EQ(node.second.role(), Role::Runs);
}

TEST(SwitchFill, AnAttemptThatCannotBeLoweredIsStopped) {
  SleepyNode node;
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  node.first.low_error = EIO;
  node.step(TimePoint{1100ms});
  EXPECT_EQ(node.first.role(), Role::Stopped);
  EXPECT_GT(node.counters.failed, 0U);
  node.step(TimePoint{1200ms});
  EXPECT_EQ(node.first.role(), Role::Runs);
}

// Helpers run on while the tasks are stopped.
TEST(SwitchFill, StoppedAttemptWithHelpersHasIdlePriority) {
  auto made = std::make_unique<FakeTarget>();
  FakeTarget& target = *made;
  made->set_has_helpers(true);
  SwitchEntry entry(AttemptId{1}, std::move(made));
  EXPECT_EQ(entry.stop(), 0);
  EXPECT_FALSE(target.is_running);
  EXPECT_TRUE(target.is_low);
  EXPECT_EQ(entry.set_low(false), 0);
  EXPECT_FALSE(target.is_low) << "as when it continues";
  target.low_error = EIO;
  EXPECT_EQ(entry.stop(), 0) << "its tasks are stopped nevertheless";
  SwitchEntry other(AttemptId{2}, std::make_unique<FakeTarget>());
  EXPECT_EQ(other.stop(), 0);
  EXPECT_FALSE(other.is_low);
}

}  // namespace
}  // namespace score::node
