// These tests run the exchanges of several nodes in one process; their messages may be lost or
// arrive twice.
#include "scored/job/pmix/exchange.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace score::pmix {
namespace {

using namespace std::chrono_literals;

constexpr base::TimePoint kStart{};

// Ranks 0 and 1 are on node 0, rank 2 is on node 1, and rank 3 is on node 2.
class ExchangeTest : public ::testing::Test {
 protected:
  void run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::uint32_t node = 0; node < nodes_.size(); ++node) moved |= step(node);
    }
  }

  bool step(std::uint32_t node) {
    auto actions = nodes_[node].take_actions();
    for (auto& answer : actions.answers) answers_[node].push_back(std::move(answer));
    for (const auto& ask : actions.asks) asks_[node].push_back(ask);
    for (const auto& message : actions.messages) {
      for (int copies = copies_(); copies > 0; --copies) {
        nodes_[message.node].receive(node, message.message);
      }
    }
    return !actions.messages.empty() || !actions.answers.empty();
  }

  Exchange::Answer take(std::uint32_t node) {
    if (answers_[node].empty()) return {999, ExchangeOutcome::Refused, "", {}};
    auto answer = std::move(answers_[node].front());
    answers_[node].pop_front();
    return answer;
  }

  static std::vector<PublishedItem> item(std::uint32_t owner, const std::string& key) {
    return {{owner, key, "value of " + key}};
  }

  const std::vector<std::uint32_t> map_{0, 0, 1, 2};
  std::vector<Exchange> nodes_{{0, map_}, {1, map_}, {2, map_}};
  std::map<std::uint32_t, std::deque<Exchange::Answer>> answers_;
  std::map<std::uint32_t, std::vector<Exchange::Ask>> asks_;
  std::function<int()> copies_ = [] { return 1; };
};

TEST_F(ExchangeTest, ExpiredLookupsFreeTheirSlot) {
  for (const std::uint32_t node : {0u, 1u}) {
    for (int i = 0; i < 5000; ++i) {
      nodes_[node].lookup(1, {"never"}, {kStart + 1s, true}, kStart);
      run();
      nodes_[node].turn(kStart + 2s);
      run();
      ASSERT_EQ(take(node).outcome, ExchangeOutcome::TimedOut);
      ASSERT_TRUE(answers_[node].empty());
    }
    const std::string name = "door" + std::to_string(node);
    nodes_[node].lookup(2, {name}, {std::nullopt, true}, kStart);
    run();
    EXPECT_TRUE(answers_[node].empty());
    nodes_[2].publish(3, item(3, name), kStart);
    run();
    EXPECT_EQ(take(node).outcome, ExchangeOutcome::Success);
  }
}

TEST_F(ExchangeTest, PublishedNameIsFoundUntilWithdrawn) {
  nodes_[1].publish(1, item(2, "door"), kStart);
  run();
  EXPECT_EQ(take(1).outcome, ExchangeOutcome::Success);
  nodes_[2].lookup(2, {"door"}, {}, kStart);
  run();
  const auto found = take(2);
  ASSERT_EQ(found.items.size(), 1U);
  EXPECT_EQ(found.items[0].value, "value of door");
  EXPECT_EQ(found.items[0].owner, 2U);
  nodes_[1].unpublish(3, 2, {"door"}, kStart);
  nodes_[0].lookup(4, {"door"}, {}, kStart);
  run();
  EXPECT_EQ(take(1).outcome, ExchangeOutcome::Success);
  nodes_[0].lookup(5, {"door"}, {}, kStart);
  run();
  take(0);
  EXPECT_EQ(take(0).outcome, ExchangeOutcome::NotFound);
}

TEST_F(ExchangeTest, UnknownNameCannotBeWithdrawn) {
  nodes_[1].unpublish(1, 2, {"door"}, kStart);
  run();
  EXPECT_EQ(take(1).outcome, ExchangeOutcome::NotFound);
  nodes_[0].publish(2, item(0, "door"), kStart);
  nodes_[1].unpublish(3, 2, {"door"}, kStart);  // a name of another rank
  run();
  EXPECT_EQ(take(1).outcome, ExchangeOutcome::NotFound);
  nodes_[1].unpublish(4, 2, {}, kStart);
  run();
  EXPECT_EQ(take(1).outcome, ExchangeOutcome::Success);
}

TEST_F(ExchangeTest, RepeatedWithdrawalHasTheSameAnswer) {
  nodes_[1].publish(1, item(2, "door"), kStart);
  run();
  take(1);
  wire::PmixPeer message;
  message.set_kind(wire::PmixPeer::UNPUBLISH);
  message.set_rank(2);
  message.set_request(9);
  message.add_keys("door");
  for (int again = 0; again < 2; ++again) {
    nodes_[0].receive(1, message);
    const auto sent = nodes_[0].take_actions().messages;
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].message.outcome(), static_cast<std::uint32_t>(ExchangeOutcome::Success));
  }
}

TEST_F(ExchangeTest, NameCanBePublishedOnce) {
  nodes_[0].publish(1, item(0, "door"), kStart);
  nodes_[1].publish(2, item(2, "door"), kStart);
  run();
  EXPECT_EQ(take(0).outcome, ExchangeOutcome::Success);
  EXPECT_EQ(take(1).outcome, ExchangeOutcome::Duplicate);
}

TEST_F(ExchangeTest, OtherTaskCannotWithdrawName) {
  nodes_[0].publish(1, item(0, "door"), kStart);
  nodes_[1].unpublish(2, 2, {}, kStart);
  nodes_[2].lookup(3, {"door", "window"}, {}, kStart);
  run();
  const auto found = take(2);
  EXPECT_EQ(found.outcome, ExchangeOutcome::Partial);
  EXPECT_EQ(found.items.size(), 1U);
}

TEST_F(ExchangeTest, LookupMayWait) {
  nodes_[2].lookup(1, {"door"}, {.deadline = {}, .waits = true}, kStart);
  run();
  EXPECT_TRUE(answers_[2].empty());
  nodes_[1].publish(2, item(2, "door"), kStart);
  run();
  EXPECT_EQ(take(2).items.size(), 1U);
}

TEST_F(ExchangeTest, WaitingEndsAtItsDeadline) {
  nodes_[2].lookup(1, {"door"}, {.deadline = kStart + 5s, .waits = true}, kStart);
  run();
  nodes_[2].turn(kStart + 4s);
  run();
  EXPECT_TRUE(answers_[2].empty());
  nodes_[2].turn(kStart + 5s);
  run();
  EXPECT_EQ(take(2).outcome, ExchangeOutcome::TimedOut);
  EXPECT_FALSE(nodes_[2].has_pending());
}

TEST_F(ExchangeTest, DataOfRankComesFromItsNode) {
  nodes_[0].get(1, 3, {}, kStart);
  run();
  ASSERT_EQ(asks_[2].size(), 1U);
  EXPECT_EQ(asks_[2][0].rank, 3U);
  nodes_[2].answered(asks_[2][0].ticket, ExchangeOutcome::Success, "its data");
  nodes_[2].answered(asks_[2][0].ticket, ExchangeOutcome::Success, "again");
  run();
  EXPECT_EQ(take(0).data, "its data");
  EXPECT_TRUE(answers_[0].empty());
  nodes_[0].get(2, 77, {}, kStart);
  run();
  EXPECT_EQ(take(0).outcome, ExchangeOutcome::NotFound);
}

TEST_F(ExchangeTest, RequestToDepartedNodeIsAnswered) {
  nodes_[2].lookup(1, {"door"}, {.deadline = {}, .waits = true}, kStart);
  auto actions = nodes_[2].take_actions();
  ASSERT_EQ(actions.messages.size(), 1U);
  const auto answer = answer_of_the_departed(actions.messages[0].message);
  ASSERT_TRUE(answer);
  nodes_[2].receive(0, *answer);
  run();
  EXPECT_EQ(take(2).outcome, ExchangeOutcome::NotFound);
  EXPECT_FALSE(answer_of_the_departed(*answer));
}

TEST_F(ExchangeTest, SomeRanksFenceWithoutTheOthers) {
  for (int turn = 0; turn < 3; ++turn) {
    nodes_[2].fence(1, {3, 1}, "c", kStart);
    run();
    EXPECT_TRUE(answers_[2].empty());
    nodes_[0].fence(2, {1, 3}, "a", kStart);
    run();
    EXPECT_EQ(take(0).data, "ac");
    EXPECT_EQ(take(2).data, "ac");
  }
  EXPECT_TRUE(answers_[1].empty());
}

TEST_F(ExchangeTest, FenceOfOneNodeCompletesAtOnce) {
  nodes_[0].fence(1, {0, 1}, "mine", kStart);
  EXPECT_EQ(nodes_[0].take_actions().answers.at(0).data, "mine");
}

TEST_F(ExchangeTest, LossAndRepeatsChangeNothing) {
  std::mt19937 random(7);
  copies_ = [&random] { return static_cast<int>(random() % 3); };
  base::TimePoint now = kStart;
  for (std::uint64_t round = 1; round <= 50; ++round) {
    const auto key = "key " + std::to_string(round);
    nodes_[0].fence(1, {0, 2, 3}, "a", now);
    nodes_[1].fence(1, {0, 2, 3}, "b", now);
    nodes_[2].fence(1, {0, 2, 3}, "c", now);
    nodes_[1].publish(2, item(2, key), now);
    nodes_[2].lookup(3, {key}, {.deadline = {}, .waits = true}, now);
    for (int turns = 0; turns < 1000; ++turns) {
      run();
      const bool pending =
          nodes_[0].has_pending() || nodes_[1].has_pending() || nodes_[2].has_pending();
      if (!pending) break;
      now += 1s;
      for (auto& node : nodes_) node.turn(now);
    }
    ASSERT_EQ(answers_[0].size(), 1U);
    EXPECT_EQ(take(0).data, "abc");
    ASSERT_EQ(answers_[1].size(), 2U);
    ASSERT_EQ(answers_[2].size(), 2U);
    for (const std::uint32_t node : {1U, 2U}) {
      for (int i = 0; i < 2; ++i) {
        const auto answer = take(node);
        EXPECT_EQ(answer.outcome, ExchangeOutcome::Success);
        if (answer.token == 1) {
          EXPECT_EQ(answer.data, "abc");
        } else if (answer.token == 3) {
          EXPECT_EQ(answer.items.at(0).value, "value of " + key);
        }
      }
    }
  }
}

TEST_F(ExchangeTest, RandomMessagesAreIgnored) {
  std::mt19937 random(3);
  for (int turn = 0; turn < 2000; ++turn) {
    std::string bytes(random() % 60, '\0');
    for (auto& byte : bytes) byte = static_cast<char>(random());
    wire::PmixPeer message;
    if (message.ParseFromString(bytes))
      nodes_[0].receive(static_cast<std::uint32_t>(random() % 5), message);
    nodes_[0].answered(random() % 5, ExchangeOutcome::Success, bytes);
  }
  std::ignore = nodes_[0].take_actions();
  nodes_[0].fence(1, {0, 1}, "mine", kStart);
  EXPECT_EQ(nodes_[0].take_actions().answers.at(0).data, "mine");
}

}  // namespace
}  // namespace score::pmix
