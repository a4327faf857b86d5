#include "scored/node/switch/fake_node.hpp"

#include <gtest/gtest.h>

namespace score::node {
namespace {

using namespace test;

SwitchPlan filled_turns(TimePoint start, std::vector<std::uint64_t> fill) {
  SwitchPlan plan = turns(start);
  plan.fill = ids(std::move(fill));
  return plan;
}

// A share of the time, at idle priority too.
struct SteadyUsage final : CpuUsage {
  explicit SteadyUsage(const Duration& total) : used_so_far(total) {}

  Duration used() noexcept override { return used_so_far; }

  Duration waited() noexcept override { return Duration{0}; }

  Duration used_by(pid_t) noexcept override { return Duration{-1}; }

  const Duration& used_so_far;
};

TEST(SwitchFill, AnAttemptThatMayFillRunsOnAtIdlePriority) {
  Node node;
  auto& first = node.add(1);
  auto& second = node.add(2);
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  EXPECT_EQ(first.role(), Role::Runs);
  EXPECT_EQ(second.role(), Role::Fills);
  node.step(TimePoint{1100ms});
  EXPECT_EQ(first.role(), Role::Fills);
  EXPECT_EQ(second.role(), Role::Runs);
  EXPECT_EQ(first.stops + second.stops, 0);
  EXPECT_TRUE(node.program->parts[0].turns.empty()) << "the fast path knows no fillers";
  EXPECT_EQ(node.entries[0]->clock.read(TimePoint{5s}), 100ms) << "only its turns";
  const auto records = node.trace.read(TimePoint{}).records;
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].filling_count, 1U);
  EXPECT_EQ(records[1].filling[0], AttemptId{1});
  EXPECT_EQ(records[1].left[0], AttemptId{1});
}

TEST(SwitchFill, NothingFillsWithoutTheConsentOfBoth) {
  for (const std::vector<std::uint64_t>& fill : {std::vector<std::uint64_t>{1}, {2}, {}}) {
    Node node;
    auto& first = node.add(1);
    auto& second = node.add(2);
    node.follow({filled_turns(TimePoint{1s}, fill)});
    node.step(TimePoint{1s});
    EXPECT_EQ(second.role(), Role::Stopped);
    node.step(TimePoint{1100ms});
    EXPECT_EQ(first.role(), Role::Stopped);
  }
}

TEST(SwitchFill, AnAttemptWithoutControlOfItsPriorityIsStopped) {
  Node node;
  node.add(1);
  auto& second = node.add(2, nullptr, false);
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  EXPECT_EQ(second.role(), Role::Stopped);
}

TEST(SwitchFill, AttemptsThatShareAChannelDoNotFill) {
  Node node;
  auto& second = (node.add(1), node.add(2));
  SharedChannel channel(node);
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.program->networks = channel.users;
  node.program->find_shared_channels();
  node.follower.take(node.program.get());
  node.step(TimePoint{1s});
  EXPECT_EQ(second.role(), Role::Stopped);
  node.program->networks[0] = nullptr;
  node.program->find_shared_channels();
  node.follower.take(node.program.get());
  node.step(TimePoint{1s});
  EXPECT_EQ(second.role(), Role::Fills);
}

TEST(SwitchFill, BesideAGangThatUsesAllOfItsTimeNothingFills) {
  Node node;
  Duration used{0}, other{0};
  node.add(1, std::make_unique<SteadyUsage>(used));
  auto& second = node.add(2, std::make_unique<SteadyUsage>(other));
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  EXPECT_EQ(second.role(), Role::Fills) << "not known yet";
  used += 97ms;
  other += 3ms;
  node.step(TimePoint{1100ms});
  other += 50ms;
  used += 50ms;
  node.step(TimePoint{1200ms});
  EXPECT_EQ(second.role(), Role::Stopped);
  EXPECT_EQ(node.entries[0]->account.read(node.entries[0]->watch), 50ms);
  EXPECT_EQ(node.entries[1]->account.read(node.entries[1]->watch), 3ms);
  used += 50ms;
  node.step(TimePoint{1300ms});
  node.step(TimePoint{1400ms});
  EXPECT_EQ(second.role(), Role::Fills);
}

TEST(SwitchFill, AFillerGoesOnAtNormalPriorityWhenItIsReleased) {
  Node node;
  auto& second = (node.add(1), node.add(2));
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  ASSERT_EQ(second.role(), Role::Fills);
  node.follower.release();
  EXPECT_EQ(second.role(), Role::Runs);
}

TEST(SwitchFill, AStoppedFillerIsRaisedBeforeItGoesOn) {
  Node node;
  auto& second = (node.add(1), node.add(2));
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  const auto before = std::move(node.program);
  node.follow({turns(TimePoint{1s})});
  node.step(TimePoint{1050ms});
  EXPECT_EQ(second.role(), Role::Stopped);
  EXPECT_TRUE(second.is_low);
  node.step(TimePoint{1100ms});
  EXPECT_EQ(second.role(), Role::Runs);
}

TEST(SwitchFill, AnAttemptThatCannotBeLoweredIsStopped) {
  Node node;
  auto& first = (node.add(1), *node.targets[0]);
  node.add(2);
  node.follow({filled_turns(TimePoint{1s}, {1, 2})});
  node.step(TimePoint{1s});
  first.low_error = EIO;
  node.step(TimePoint{1100ms});
  EXPECT_EQ(first.role(), Role::Stopped);
  EXPECT_GT(node.counters.failed, 0U);
  node.step(TimePoint{1200ms});
  EXPECT_EQ(first.role(), Role::Runs);
}

}  // namespace
}  // namespace score::node
