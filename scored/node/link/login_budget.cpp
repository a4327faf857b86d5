#include "scored/node/link/login_budget.hpp"

#include <algorithm>

namespace score::node {

namespace {

constexpr std::size_t kManyUsers = 256;  // above this, users with a full share are removed
constexpr Duration kRefill = std::chrono::nanoseconds{
    static_cast<std::int64_t>(LoginBudget::kBurst / LoginBudget::kPerSecond * 1e9)};

}  // namespace

TimePoint LoginBudget::reserve(UserId user, TimePoint now) {
  if (users_.size() >= kManyUsers) {
    std::erase_if(users_, [now](const auto& entry) { return entry.second.whole <= now; });
  }
  Share& share = users_[user];
  const TimePoint when = share.bucket.reserve(now);
  share.whole = std::max(when, now) + kRefill;
  return when;
}

}  // namespace score::node
