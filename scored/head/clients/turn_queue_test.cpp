#include "scored/head/clients/turn_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace score::head {
namespace {

constexpr UserId kFlooder(1000);
constexpr UserId kOther(1001);

TEST(TurnQueue, TurnGoesToTheUserWithLeastUse) {
  TurnQueue queue;
  for (TurnQueue::Ticket i = 0; i < 10; ++i) queue.add(kFlooder, i);
  EXPECT_EQ(queue.next(), 0u);
  queue.charge(kFlooder, 20ms);
  queue.add(kOther, 100);
  queue.add(kOther, 101);
  // The flooder's cost so far does not count against the other user, and is not forgotten.
  EXPECT_EQ(queue.next(), 100u);
  queue.charge(kOther, 1ms);
  EXPECT_EQ(queue.next(), 101u);
  queue.charge(kOther, 1ms);
  EXPECT_EQ(queue.next(), 1u);
}

TEST(TurnQueue, AbsentUserSavesUpNoTime) {
  TurnQueue queue;
  for (TurnQueue::Ticket i = 0; i < 100; ++i) {
    queue.add(kFlooder, i);
    ASSERT_EQ(queue.next(), i);
    queue.charge(kFlooder, 1s);
  }
  queue.add(kFlooder, 200);
  for (TurnQueue::Ticket i = 300; i < 400; ++i) queue.add(kOther, i);
  std::size_t before = 0;  // requests of the other user before the flooder's turn
  while (queue.next() != 200u) {
    queue.charge(kOther, 100ms);
    ++before;
  }
  EXPECT_LE(before, 12u);
}

TEST(TurnQueue, UsersTakeTurnsWithoutMeasurableTime) {
  TurnQueue queue;
  for (TurnQueue::Ticket i = 0; i < 10; ++i) queue.add(kFlooder, i);
  for (TurnQueue::Ticket i = 100; i < 110; ++i) queue.add(kOther, i);
  int of_other = 0;
  for (int i = 0; i < 10; ++i) {
    const bool is_other = *queue.next() >= 100;
    queue.charge(is_other ? kOther : kFlooder, Duration(0));
    of_other += is_other ? 1 : 0;
  }
  EXPECT_EQ(of_other, 5);
}

TEST(TurnQueue, ForgetsARemovedTicket) {
  TurnQueue queue;
  queue.add(kOther, 1);
  queue.add(kOther, 2);
  queue.remove(kOther, 1);
  queue.remove(kFlooder, 2);
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.next(), 2u);
  EXPECT_EQ(queue.next(), std::nullopt);
}

// Two users who always wait get the same time, up to one request of each, and no request is lost.
TEST(TurnQueue, SharesTimeEquallyForAnyCosts) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    constexpr std::int64_t kMostMs = 20;
    TurnQueue queue;
    std::set<TurnQueue::Ticket> open;
    std::vector<UserId> users;
    std::map<UserId, Duration> used;
    std::map<TurnQueue::Ticket, UserId> owner;
    TurnQueue::Ticket ticket = 0;
    const auto add = [&](UserId user) {
      queue.add(user, ++ticket);
      open.insert(ticket);
      owner[ticket] = user;
    };
    for (std::uint32_t i = 0; i < 2 + random() % 5; ++i) users.emplace_back(i);
    for (const UserId user : users) {
      for (unsigned i = 0; i < 1 + random() % 50; ++i) add(user);
    }
    for (int step = 0; step < 500; ++step) {
      const auto next = queue.next();
      ASSERT_TRUE(next);
      ASSERT_EQ(open.erase(*next), 1u) << "seed " << seed;
      const UserId user = owner[*next];
      const Duration time = std::chrono::milliseconds(1 + random() % kMostMs);
      queue.charge(user, time);
      used[user] += time;
      add(user);
      const auto [least, most] =
          std::minmax_element(used.begin(), used.end(),
                              [](const auto& a, const auto& b) { return a.second < b.second; });
      if (used.size() == users.size()) {
        ASSERT_LE(most->second - least->second, 2 * std::chrono::milliseconds(kMostMs))
            << "seed " << seed;
      }
    }
    ASSERT_EQ(queue.size(), open.size());
  }
}

}  // namespace
}  // namespace score::head
