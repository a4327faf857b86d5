#pragma once
// UserBudgets gives each user a ByteBudget of the same size. A budget lives as long as a share of
// it.

#include "base/async/byte_budget.hpp"
#include "base/ids.hpp"

#include <cstddef>
#include <map>
#include <memory>

namespace score::head {

class UserBudgets {
 public:
  explicit UserBudgets(std::size_t most) : most_(most) {}

  [[nodiscard]] std::shared_ptr<ByteBudget> of(UserId user) {
    if (auto budget = budgets_[user].lock()) return budget;
    if (budgets_.size() > kManyUsers)
      std::erase_if(budgets_, [](const auto& entry) { return entry.second.expired(); });
    auto budget = std::make_shared<ByteBudget>(most_, most_);
    budgets_[user] = budget;
    return budget;
  }

 private:
  static constexpr std::size_t kManyUsers = 256;  // above this, users without shares are removed

  std::size_t most_;
  std::map<UserId, std::weak_ptr<ByteBudget>> budgets_;
};

}  // namespace score::head
