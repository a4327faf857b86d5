#include "scored/head/notices/delivery_queue.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

namespace score::head {
namespace {

constexpr TimePoint kStart{1h};
constexpr UserId kAlice{1000};
constexpr UserId kBob{1001};

Notice notice(const std::string& id, UserId user = kAlice) {
  Notice made;
  made.user = user;
  made.id = id;
  return made;
}

DeliveryRules rules(std::size_t places = 4, std::size_t per_user = 3) {
  DeliveryRules made;
  made.share = {"test", places, per_user};
  made.tries = 3;
  made.first_pause = 1s;
  made.longest_pause = 3s;
  return made;
}

std::string taken(DeliveryQueue& queue, TimePoint now) {
  const auto delivery = queue.take(now);
  return delivery ? delivery->notice.id : "";
}

using Outcome = DeliveryQueue::Outcome;
using Verdict = DeliveryQueue::Verdict;

TEST(DeliveryQueue, SendsInOrderOneAtATime) {
  DeliveryQueue queue(rules());
  EXPECT_EQ(queue.next_time(), std::nullopt);
  queue.add(notice("a"), kStart);
  queue.add(notice("b"), kStart);
  EXPECT_EQ(queue.next_time(), kStart);
  const auto first = queue.take(kStart);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->notice.id, "a");
  EXPECT_EQ(taken(queue, kStart), "") << "one is being sent";
  EXPECT_EQ(queue.next_time(), std::nullopt);
  EXPECT_EQ(queue.settle(first->key, Outcome::Sent, kStart), Verdict::Sent);
  EXPECT_EQ(taken(queue, kStart), "b");
  EXPECT_EQ(queue.size(), 1U);
}

TEST(DeliveryQueue, RetriesWithGrowingPausesThenGivesUp) {
  DeliveryQueue queue(rules());
  queue.add(notice("a"), kStart);
  queue.add(notice("b"), kStart);
  const auto first = queue.take(kStart);
  EXPECT_EQ(queue.settle(first->key, Outcome::Failed, kStart), Verdict::WillRetry);
  const auto other = queue.take(kStart);
  EXPECT_EQ(other->notice.id, "b") << "those behind it go first";
  queue.settle(other->key, Outcome::Sent, kStart);
  EXPECT_EQ(queue.next_time(), kStart + 1s);
  EXPECT_EQ(taken(queue, kStart + 999ms), "");
  ASSERT_EQ(taken(queue, kStart + 1s), "a");
  EXPECT_EQ(queue.settle(first->key, Outcome::Failed, kStart + 1s), Verdict::WillRetry);
  EXPECT_EQ(queue.next_time(), kStart + 3s);
  ASSERT_EQ(taken(queue, kStart + 3s), "a");
  EXPECT_EQ(queue.settle(first->key, Outcome::Failed, kStart + 3s), Verdict::GivenUp);
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_EQ(queue.settle(first->key, Outcome::Sent, kStart), Verdict::GivenUp) << "it is gone";
}

TEST(DeliveryQueue, RefusedNoticeIsNotRetried) {
  DeliveryQueue queue(rules());
  queue.add(notice("a"), kStart);
  const auto first = queue.take(kStart);
  EXPECT_EQ(queue.settle(first->key, Outcome::Refused, kStart), Verdict::GivenUp);
  EXPECT_EQ(queue.next_time(), std::nullopt);
}

TEST(DeliveryQueue, FullQueueDropsTheOldest) {
  DeliveryQueue queue(rules());
  for (const char* id : {"1", "2", "3"}) EXPECT_EQ(queue.add(notice(id), kStart), 0U);
  EXPECT_EQ(queue.add(notice("b", kBob), kStart), 0U);
  EXPECT_EQ(queue.add(notice("4"), kStart), 1U) << "the oldest of the same user";
  EXPECT_EQ(queue.size_of(kAlice), 3U);
  EXPECT_EQ(queue.add(notice("c", kBob), kStart), 1U) << "the oldest of all";
  EXPECT_EQ(queue.size(), 4U);
  std::string order;
  while (const auto delivery = queue.take(kStart)) {
    order += delivery->notice.id;
    queue.settle(delivery->key, Outcome::Sent, kStart);
  }
  EXPECT_EQ(order, "3b4c");
}

TEST(DeliveryQueue, NoticeThatIsBeingSentKeepsItsPlace) {
  DeliveryQueue queue(rules(2, 1));
  queue.add(notice("a"), kStart);
  const auto first = queue.take(kStart);
  EXPECT_EQ(queue.add(notice("b"), kStart), 1U) << "the new one is dropped";
  EXPECT_EQ(queue.settle(first->key, Outcome::Sent, kStart), Verdict::Sent);
  EXPECT_EQ(queue.size(), 0U);
}

// Each notice is counted once: it is sent, given up or dropped, whatever happens.
TEST(DeliveryQueue, AccountsForEveryNotice) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    DeliveryRules some = rules(1 + random() % 6, 1 + random() % 6);
    some.at_once = 1 + random() % 3;
    DeliveryQueue queue(some);
    std::set<std::uint64_t> sending;
    std::size_t added = 0, done = 0, dropped = 0;
    TimePoint now = kStart;
    for (int step = 0; step < 300; ++step) {
      now += Duration(random() % 2'000'000'000);
      if (random() % 3 != 0) {
        ++added;
        dropped += queue.add(notice("x", UserId(static_cast<std::uint32_t>(random() % 3))), now);
      }
      while (const auto delivery = queue.take(now)) sending.insert(delivery->key);
      EXPECT_LE(sending.size(), some.at_once);
      if (!sending.empty() && random() % 2 == 0) {
        const auto outcome = static_cast<Outcome>(random() % 3);
        if (queue.settle(*sending.begin(), outcome, now) != Verdict::WillRetry) ++done;
        sending.erase(sending.begin());
      }
      EXPECT_LE(queue.size(), some.share.places);
      EXPECT_EQ(added, done + dropped + queue.size());
    }
  }
}

}  // namespace
}  // namespace score::head
