#include "scored/node/link/login_budget.hpp"

#include <gtest/gtest.h>

namespace score::node {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kNow{1h};
constexpr auto kBurst = static_cast<int>(LoginBudget::kBurst);

TEST(LoginBudget, AllowsBurstAndThenSteadyRate) {
  LoginBudget budget;
  for (int i = 0; i < kBurst; ++i) EXPECT_EQ(budget.reserve(UserId{7}, kNow), kNow);
  TimePoint last = kNow;
  for (int i = 0; i < 100; ++i) {
    const TimePoint next = budget.reserve(UserId{7}, kNow);
    EXPECT_GT(next, last);
    last = next;
  }
  EXPECT_EQ(last, kNow + 2s);
}

TEST(LoginBudget, OneUserDoesNotDelayOthers) {
  LoginBudget budget;
  for (int i = 0; i < 10 * kBurst; ++i) budget.reserve(UserId{7}, kNow);
  EXPECT_EQ(budget.reserve(UserId{8}, kNow), kNow);
}

TEST(LoginBudget, RemovesUsersButNotTheirDebt) {
  LoginBudget budget;
  for (int i = 0; i < 2 * kBurst; ++i) budget.reserve(UserId{7}, kNow);
  for (std::uint32_t user = 1000; user < 6000; ++user) {
    budget.reserve(UserId{user}, kNow + user * 1ms);
  }
  EXPECT_LT(budget.size(), 5000U);
  LoginBudget owing;
  for (int i = 0; i < 4 * kBurst; ++i) owing.reserve(UserId{7}, kNow);
  for (std::uint32_t user = 1000; user < 6000; ++user) owing.reserve(UserId{user}, kNow + 1s);
  EXPECT_GT(owing.reserve(UserId{7}, kNow + 1s), kNow + 10s);
}

}  // namespace
}  // namespace score::node
