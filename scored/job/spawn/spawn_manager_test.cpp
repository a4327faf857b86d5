// These tests run the desks of three nodes in one process; their messages may be lost or arrive
// twice.
#include "scored/job/spawn/spawn_manager.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace score::shepherd {
namespace {

using namespace std::chrono_literals;

// Tasks 0 and 1 are on node 0, task 2 is on node 1; the room is 3 on node 1, and 4 and 5 on node 2.
class SpawnManagerTest : public ::testing::Test {
 protected:
  static wire::SpawnedWorld world_of(std::uint32_t tasks) {
    wire::SpawnedWorld world;
    auto* program = world.add_programs();
    program->add_argv("child");
    program->set_tasks(tasks);
    return world;
  }

  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t node = 0; node < managers_.size(); ++node) moved = step(node) || moved;
    }
  }

  bool step(std::uint32_t node) {
    auto actions = managers_[node].take_actions();
    if (actions.check) {
      checks_.push_back(node);
      managers_[node].checked(actions.check->number(), refusal_[node]);
    }
    if (actions.start) {
      starts_[node].push_back(*actions.start);
      managers_[node].started(actions.start->number(), "");
    }
    for (const auto& answer : actions.answers) answers_[node].push_back(answer);
    closed_[node] += actions.closes ? 1 : 0;
    for (const auto& message : actions.messages) {
      for (int copies = copies_(); copies > 0; --copies) {
        managers_[message.node].receive(node, message.message);
      }
    }
    return actions.check || actions.start || !actions.messages.empty();
  }

  // Runs until no request is pending, or for many turns.
  void run_with_turns() {
    for (int turn = 0; turn < 200; ++turn) {
      run();
      now_ += 1s;
      for (auto& manager : managers_) manager.turn(now_);
    }
    run();
  }

  base::TimePoint now_{};
  const std::vector<std::uint32_t> map_{0, 0, 1, 1, 2, 2};
  std::vector<SpawnManager> managers_{SpawnManager({0, map_, 3}), SpawnManager({1, map_, 3}),
                                      SpawnManager({2, map_, 3})};
  std::map<std::uint32_t, std::string> refusal_;
  std::vector<std::uint32_t> checks_;
  std::map<std::uint32_t, std::vector<wire::SpawnedWorld>> starts_;
  std::map<std::uint32_t, std::vector<SpawnManager::Answer>> answers_;
  std::map<std::uint32_t, int> closed_;
  std::function<int()> copies_ = [] { return 1; };
};

TEST_F(SpawnManagerTest, EveryNodeStartsItsPartOfWorld) {
  managers_[1].request(5, world_of(2), now_);
  run();
  EXPECT_EQ(checks_, (std::vector<std::uint32_t>{1, 2}));
  for (std::uint32_t node = 0; node < 3; ++node) {
    ASSERT_EQ(starts_[node].size(), 1U);
    const auto& places = starts_[node][0].places();
    EXPECT_EQ(std::vector<std::uint32_t>(places.begin(), places.end()),
              (std::vector<std::uint32_t>{3, 4}));
  }
  ASSERT_EQ(answers_[1].size(), 1U);
  EXPECT_EQ(answers_[1][0].token, 5U);
  EXPECT_EQ(answers_[1][0].world, 1U);
}

TEST_F(SpawnManagerTest, RoomIsUsedOnceAndAnswerNamesOption) {
  managers_[0].request(1, world_of(2), now_);
  managers_[0].request(2, world_of(2), now_);
  managers_[2].request(1, world_of(1), now_);
  run();
  ASSERT_EQ(answers_[0].size(), 2U);
  EXPECT_EQ(answers_[0][0].world, 1U);
  EXPECT_EQ(answers_[0][1].world, 0U);
  EXPECT_NE(answers_[0][1].reason.find("--spawn 4"), std::string::npos) << answers_[0][1].reason;
  ASSERT_EQ(answers_[2].size(), 1U);
  EXPECT_EQ(answers_[2][0].world, 2U);
}

TEST_F(SpawnManagerTest, RefusalOfOneNodeKeepsRoom) {
  refusal_[2] = "no such program";
  managers_[0].request(1, world_of(3), now_);
  run();
  ASSERT_EQ(answers_[0].size(), 1U);
  EXPECT_EQ(answers_[0][0].world, 0U);
  EXPECT_EQ(answers_[0][0].reason, "no such program");
  EXPECT_TRUE(starts_.empty());
  refusal_.clear();
  managers_[0].request(2, world_of(3), now_);
  run();
  EXPECT_NE(answers_[0][1].world, 0U);
}

TEST_F(SpawnManagerTest, HostileCountsAreRefused) {
  auto world = world_of(4294967295U);
  *world.add_programs() = world.programs(0);
  managers_[1].request(1, world, now_);
  managers_[1].request(2, world_of(0), now_);
  managers_[1].request(3, wire::SpawnedWorld(), now_);
  run();
  ASSERT_EQ(answers_[1].size(), 3U);
  for (const auto& answer : answers_[1]) EXPECT_EQ(answer.world, 0U);
  EXPECT_TRUE(starts_.empty());
}

TEST_F(SpawnManagerTest, ClosesWhenNoTaskRunsAnywhere) {
  managers_[1].request(5, world_of(2), now_);
  run();
  managers_[2].idle(1);
  managers_[1].idle(2);
  run();
  EXPECT_EQ(closed_[1], 0);
  managers_[0].idle(2);
  run();
  for (std::uint32_t node = 0; node < 3; ++node) EXPECT_EQ(closed_[node], 1) << node;
}

TEST_F(SpawnManagerTest, IdleReportBeforeLastStartIsIgnored) {
  managers_[1].idle(1);
  managers_[0].request(5, world_of(1), now_);
  run();
  managers_[0].idle(2);
  run_with_turns();
  EXPECT_EQ(closed_[0], 0) << "the task on node 1 runs";
  managers_[1].idle(2);
  managers_[2].idle(0);
  run_with_turns();
  for (std::uint32_t node = 0; node < 3; ++node) EXPECT_EQ(closed_[node], 1) << node;
}

TEST_F(SpawnManagerTest, NoSpawnAfterClose) {
  managers_[0].idle(2);
  managers_[1].idle(1);
  run();
  managers_[1].request(1, world_of(1), now_);
  run();
  ASSERT_EQ(answers_[1].size(), 1U);
  EXPECT_EQ(answers_[1][0].world, 0U);
}

TEST_F(SpawnManagerTest, LostAndRepeatedMessagesChangeNothing) {
  std::mt19937 random(3);
  copies_ = [&random] { return static_cast<int>(random() % 3); };
  managers_[1].request(5, world_of(2), now_);
  managers_[0].request(6, world_of(1), now_);
  run_with_turns();
  ASSERT_EQ(answers_[1].size(), 1U);
  ASSERT_EQ(answers_[0].size(), 1U);
  EXPECT_NE(answers_[1][0].world, 0U);
  EXPECT_NE(answers_[0][0].world, 0U);
  for (std::uint32_t node = 0; node < 3; ++node) EXPECT_EQ(starts_[node].size(), 2U) << node;
  managers_[0].idle(2);
  managers_[1].idle(2);
  managers_[2].idle(2);
  run_with_turns();
  for (std::uint32_t node = 0; node < 3; ++node) EXPECT_EQ(closed_[node], 1) << node;
}

TEST_F(SpawnManagerTest, OnlyFirstNodeMayStartAndClose) {
  wire::SpawnPeer message;
  message.set_kind(wire::SpawnPeer::START);
  *message.mutable_world() = world_of(1);
  message.mutable_world()->set_number(1);
  managers_[1].receive(2, message);
  message.set_kind(wire::SpawnPeer::CLOSE);
  managers_[1].receive(2, message);
  message.set_kind(wire::SpawnPeer::STARTED);
  managers_[0].receive(7, message);
  run();
  EXPECT_TRUE(starts_.empty());
  EXPECT_EQ(closed_[1], 0);
}

}  // namespace
}  // namespace score::shepherd
