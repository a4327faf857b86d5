#include "pmlib/fi/endpoint/order.hpp"

#include <gtest/gtest.h>

#include <string>

namespace score::pm::fi {
namespace {

struct OrderTest : testing::Test {
  void run(char name, Order::Operation operation, std::uint64_t peer = 1) {
    order.run(peer, operation, [this, name] { begun += name; });
  }

  static constexpr Order::Operation kPlain{};
  static constexpr Order::Operation kFenced{.is_fenced = true};
  static constexpr Order::Operation kLongWrite{.holds_later = true};

  Order order;
  std::string begun;
};

TEST_F(OrderTest, OperationsBehindLongWriteWait) {
  run('a', kPlain);
  run('b', kLongWrite);
  run('c', kPlain);
  run('d', kLongWrite);
  run('e', kPlain);
  run('x', kPlain, 2);  // a different peer
  EXPECT_EQ(begun, "abx");
  EXPECT_TRUE(order.must_wait(1, false));
  order.ended(1, kPlain);
  EXPECT_EQ(begun, "abx");
  order.ended(1, kLongWrite);
  EXPECT_EQ(begun, "abxcd");
  order.ended(1, kLongWrite);
  EXPECT_EQ(begun, "abxcde");
  EXPECT_EQ(order.held_count(), 0u);
}

TEST_F(OrderTest, FenceWaitsAndHoldsLaterOperations) {
  run('a', kPlain);
  run('b', kPlain);
  run('c', kFenced);
  run('d', kPlain);
  EXPECT_EQ(begun, "ab");
  order.ended(1, kPlain);
  EXPECT_EQ(begun, "ab");
  order.ended(1, kPlain);
  EXPECT_EQ(begun, "abcd");
  EXPECT_FALSE(order.must_wait(1, false));
  EXPECT_TRUE(order.must_wait(1, true));
  order.ended(1, kFenced);
  order.ended(1, kPlain);
  EXPECT_FALSE(order.must_wait(1, true));
}

TEST_F(OrderTest, OperationMayEndWhileItBegins) {
  run('a', kLongWrite);
  for (int i = 0; i < 1000; ++i) {
    order.run(1, kLongWrite, [this] {
      begun += '.';
      order.ended(1, kLongWrite);
    });
  }
  order.ended(1, kLongWrite);
  EXPECT_EQ(begun.size(), 1001u);
  EXPECT_FALSE(order.must_wait(1, true));
}

TEST_F(OrderTest, EndAfterClearIsIgnored) {
  run('a', kLongWrite);
  run('b', kPlain);
  order.clear();
  order.ended(1, kLongWrite);
  EXPECT_EQ(begun, "a");
  EXPECT_EQ(order.held_count(), 0u);
}

}  // namespace
}  // namespace score::pm::fi
