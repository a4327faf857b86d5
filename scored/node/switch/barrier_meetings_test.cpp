// Tests barrier mode on one node: an entering attempt waits for its gang, and no other attempt
// waits.
#include "scored/node/switch/switch_follower.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <arpa/inet.h>

namespace score::node {
namespace {

using base::Meeting;
using gang::SwitchPlan;

TimePoint g_now{};

struct FakeTarget final : SwitchTarget {
  int stop() noexcept override {
    is_running = false;
    return 0;
  }

  int go() noexcept override {
    is_running = true;
    return 0;
  }

  bool is_running = true;
};

std::vector<AttemptId> ids(std::initializer_list<std::uint64_t> numbers) {
  std::vector<AttemptId> made;
  for (const auto number : numbers) made.push_back(AttemptId{number});
  return made;
}

constexpr TimePoint kStart{1s};
constexpr Duration kAhead = 5s;  // cluster time is this far ahead of the node's

// Makes a plan in which 1 and 2 take turns of 100 ms, and 3 runs together with 2.
SwitchPlan turns() {
  SwitchPlan plan{Epoch{1},
                  kStart,
                  200ms,
                  {{0ms, 100ms, ids({1})}, {100ms, 100ms, ids({2, 3})}},
                  ids({1, 2, 3})};
  plan.cluster_start = kStart + kAhead;
  return plan;
}

struct Node {
  Node() {
    g_now = kStart - 1ms;
    follower.use_barriers();
    for (const std::uint64_t id : {1, 2, 3}) {
      auto target = std::make_unique<FakeTarget>();
      targets.push_back(target.get());
      entries.push_back(std::make_shared<SwitchEntry>(AttemptId{id}, std::move(target)));
    }
    follow();
    step(kStart - 1ms);
    step(kStart);
    all_meet(1, Meeting::Ready, kStart);
    step(kStart);
  }

  void follow() {
    program = std::make_unique<SwitchProgram>(std::vector{turns()}, entries);
    follower.take(program.get());
  }

  std::optional<TimePoint> step(TimePoint at) {
    g_now = at;
    return follower.step();
  }

  [[nodiscard]] bool has_reached(std::size_t id, Meeting meeting, TimePoint boundary) const {
    const auto reached = entries[id - 1]->reached[static_cast<std::size_t>(meeting)].load();
    return TimePoint(Duration(reached)) == boundary + kAhead;
  }

  void all_meet(std::size_t id, Meeting meeting, TimePoint boundary) {
    entries[id - 1]->met[static_cast<std::size_t>(meeting)] =
        (boundary + kAhead).time_since_epoch().count();
  }

  [[nodiscard]] bool runs(std::size_t id) const { return targets[id - 1]->is_running; }

  SwitchTrace trace;
  SwitchCounters counters;
  std::atomic<Duration::rep> guard_ns{0};
  SwitchFollower follower{
      {[] { return g_now; }, [](TimePoint until) { g_now = std::max(g_now, until); }, guard_ns},
      trace,
      counters};
  std::vector<FakeTarget*> targets;
  std::vector<std::shared_ptr<SwitchEntry>> entries;
  std::unique_ptr<SwitchProgram> program;
};

constexpr TimePoint kSecond = kStart + 100ms;
constexpr TimePoint kThird = kStart + 200ms;

TEST(SwitchBarrier, EnteringAttemptContinuesWhenGangHasMet) {
  Node node;
  ASSERT_TRUE(node.runs(1));
  node.step(kSecond);
  EXPECT_FALSE(node.runs(1));
  EXPECT_FALSE(node.runs(2));
  EXPECT_TRUE(node.follower.take_meeting_change());
  EXPECT_TRUE(node.has_reached(1, Meeting::Stopped, kSecond));
  EXPECT_TRUE(node.has_reached(2, Meeting::Ready, kSecond));
  node.all_meet(2, Meeting::Ready, kSecond);
  node.step(kSecond + 1ms);
  EXPECT_TRUE(node.runs(2));
}

TEST(SwitchBarrier, LateNodeCostsOnlyItsJobTheSlice) {
  Node node;
  node.step(kSecond);
  node.all_meet(3, Meeting::Ready, kSecond);
  node.step(kSecond + 1ms);
  EXPECT_TRUE(node.runs(3));
  node.step(kSecond + 90ms);
  EXPECT_FALSE(node.runs(2)) << "a node of it has not come";
  node.step(kThird);
  node.all_meet(1, Meeting::Ready, kThird);
  node.step(kThird + 1ms);
  EXPECT_TRUE(node.runs(1));
  EXPECT_FALSE(node.runs(2) || node.runs(3));
  EXPECT_EQ(node.counters.unmet, 1U);
}

TEST(SwitchBarrier, AnswerForOtherBoundaryIsIgnored) {
  Node node;
  node.step(kSecond);
  node.all_meet(2, Meeting::Ready, kStart);
  node.step(kSecond + 1ms);
  EXPECT_FALSE(node.runs(2));
  node.all_meet(2, Meeting::Ready, kSecond + 20us);  // rounded on a different node
  node.step(kSecond + 2ms);
  EXPECT_TRUE(node.runs(2));
}

TEST(SwitchBarrier, RecordContainsWaitingTime) {
  Node node;
  node.step(kSecond);
  node.all_meet(2, Meeting::Ready, kSecond);
  node.all_meet(3, Meeting::Ready, kSecond);
  node.step(kSecond + 3ms);
  const auto records = node.trace.read(kSecond - 1ms).records;
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].due, kSecond);
  EXPECT_EQ(records[0].done, 3ms);
  EXPECT_EQ(records[0].left_count, 1U);
  EXPECT_EQ(records[0].entered_count, 2U);
}

TEST(SwitchBarrier, WithoutPlanNoAttemptWaits) {
  Node node;
  node.step(kSecond);
  EXPECT_FALSE(node.runs(2));
  node.program = std::make_unique<SwitchProgram>(std::vector<SwitchPlan>{}, node.entries);
  node.follower.take(node.program.get());
  node.step(kSecond + 1ms);
  EXPECT_TRUE(node.runs(1) && node.runs(2) && node.runs(3));
}

TEST(SwitchBarrier, ContinuesAloneAfterMeetLimit) {
  Node node;
  SwitchPlan alone{Epoch{2}, kSecond, 100ms, {{0ms, 100ms, ids({2})}}, ids({1, 2})};
  alone.cluster_start = kSecond + kAhead;
  node.program = std::make_unique<SwitchProgram>(std::vector{turns(), alone}, node.entries);
  node.follower.take(node.program.get());
  node.step(kSecond - 1ms);
  const auto next = node.step(kSecond);
  EXPECT_FALSE(node.runs(2));
  ASSERT_TRUE(next);
  node.step(*next);
  EXPECT_TRUE(node.runs(2));
  EXPECT_EQ(node.counters.unmet, 1U);
}

TEST(SwitchBarrier, GangsFollowClockWhileHeadIsAway) {
  Node node;
  node.step(kSecond);
  EXPECT_FALSE(node.runs(2));
  node.follower.set_meets(false);
  node.step(kSecond + 1ms);
  EXPECT_TRUE(node.runs(2) && node.runs(3)) << "no head can announce that they have met";
  EXPECT_TRUE(node.follower.take_meeting_change());
  node.step(kThird);
  EXPECT_TRUE(node.runs(1));
  EXPECT_FALSE(node.runs(2) || node.runs(3));
  EXPECT_FALSE(node.follower.take_meeting_change());
  node.follower.set_meets(true);
  node.step(kThird + 100ms);
  EXPECT_FALSE(node.runs(2)) << "the head is there again: they meet";
}

TEST(SwitchBarrier, EndedSliceIsNotResumedOnHeadLoss) {
  Node node;
  node.step(kSecond);
  node.follower.set_meets(false);
  node.step(kThird);
  EXPECT_TRUE(node.runs(1));
  EXPECT_FALSE(node.runs(2) || node.runs(3));
}

// Lets 1 and 2 use one socket in turn.
struct SharedChannel : Node {
  SharedChannel() {
    socket = *sockets.open({UserId(0), 0, 0}, {.s_addr = htonl(INADDR_LOOPBACK)});
    for (const std::uint64_t key : {1, 2}) {
      users.push_back(std::make_shared<ChannelUser>(key, nullptr, ChannelUser::Sockets{socket}));
      users.back()->make_room();
    }
    users.push_back(nullptr);
    socket->holder = 1;
    program->networks = users;
  }

  ChannelSockets sockets;
  std::shared_ptr<ChannelSocket> socket;
  std::vector<std::shared_ptr<ChannelUser>> users;
};

TEST(SwitchBarrier, ChannelChangesHandsWhenLeavingGangHasMet) {
  SharedChannel node;
  node.step(kSecond);
  EXPECT_EQ(node.socket->holder, 1U);
  EXPECT_FALSE(node.has_reached(2, Meeting::Ready, kSecond));
  node.all_meet(1, Meeting::Stopped, kSecond);
  node.step(kSecond + 1ms);
  EXPECT_EQ(node.socket->holder, 2U);
  EXPECT_TRUE(node.has_reached(2, Meeting::Ready, kSecond));
  EXPECT_FALSE(node.runs(2));
}

TEST(SwitchBarrier, LeavingAttemptIsAwaitedOnlyBriefly) {
  SharedChannel node;
  const auto next = node.step(kSecond);
  ASSERT_TRUE(next);
  EXPECT_LE(*next, kSecond + 10ms);
  node.step(*next);
  EXPECT_TRUE(node.has_reached(2, Meeting::Ready, kSecond));
}

}  // namespace
}  // namespace score::node
