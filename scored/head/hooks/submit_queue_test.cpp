#include "scored/head/hooks/submit_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace score::head {
namespace {

std::vector<SubmitQueue::Ticket> drain(SubmitQueue& queue) {
  std::vector<SubmitQueue::Ticket> order;
  while (const auto ticket = queue.next()) order.push_back(*ticket);
  return order;
}

TEST(SubmitQueue, IsFirstInFirstOutForOneUser) {
  SubmitQueue queue;
  for (const SubmitQueue::Ticket ticket : {1, 2, 3}) queue.add(UserId(7), ticket);
  EXPECT_EQ(drain(queue), (std::vector<SubmitQueue::Ticket>{1, 2, 3}));
  EXPECT_TRUE(queue.empty());
}

TEST(SubmitQueue, LetsUsersTakeTurns) {
  SubmitQueue queue;
  for (const SubmitQueue::Ticket ticket : {1, 2, 3, 4}) queue.add(UserId(7), ticket);
  EXPECT_EQ(queue.next(), 1U);
  queue.add(UserId(5), 50);
  queue.add(UserId(9), 90);
  queue.add(UserId(9), 91);
  EXPECT_EQ(drain(queue), (std::vector<SubmitQueue::Ticket>{90, 50, 2, 91, 3, 4}));
}

}  // namespace
}  // namespace score::head
