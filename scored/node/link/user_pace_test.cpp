#include "scored/node/link/user_pace.hpp"

#include <gtest/gtest.h>

namespace score::node {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{1h};
constexpr double kRate = 50;
constexpr int kBurst = 200;

TEST(UserPace, AllowsBurstAndThenSteadyRate) {
  UserPace budget(kRate, kBurst);
  for (int i = 0; i < kBurst; ++i) EXPECT_EQ(budget.reserve(UserId{7}, 1, kNow), kNow);
  TimePoint last = kNow;
  for (int i = 0; i < 100; ++i) {
    const TimePoint next = budget.reserve(UserId{7}, 1, kNow);
    EXPECT_GT(next, last);
    last = next;
  }
  EXPECT_EQ(last, kNow + 2s);
}

TEST(UserPace, OneUserDoesNotDelayOthers) {
  UserPace budget(kRate, kBurst);
  for (int i = 0; i < 10 * kBurst; ++i) budget.reserve(UserId{7}, 1, kNow);
  EXPECT_EQ(budget.reserve(UserId{8}, 1, kNow), kNow);
}

TEST(UserPace, RemovesUsersButNotTheirDebt) {
  UserPace budget(kRate, kBurst);
  for (int i = 0; i < 2 * kBurst; ++i) budget.reserve(UserId{7}, 1, kNow);
  for (std::uint32_t user = 1000; user < 6000; ++user) {
    budget.reserve(UserId{user}, 1, kNow + user * 1ms);
  }
  EXPECT_LT(budget.size(), 5000U);
  UserPace owing(kRate, kBurst);
  for (int i = 0; i < 4 * kBurst; ++i) owing.reserve(UserId{7}, 1, kNow);
  for (std::uint32_t user = 1000; user < 6000; ++user) owing.reserve(UserId{user}, 1, kNow + 1s);
  EXPECT_GT(owing.reserve(UserId{7}, 1, kNow + 1s), kNow + 10s);
}

}  // namespace
}  // namespace score::node
