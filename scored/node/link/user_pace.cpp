#include "scored/node/link/user_pace.hpp"

namespace score::node {

namespace {

constexpr std::size_t kManyUsers = 256;  // above this, users with a full share are removed

}  // namespace

TimePoint UserPace::reserve(UserId user, double cost, TimePoint now) {
  if (users_.size() >= kManyUsers) {
    std::erase_if(users_, [now](const auto& entry) { return entry.second.whole <= now; });
  }
  Share& share = users_.try_emplace(user, Share{TokenBucket(rate_, burst_), now}).first->second;
  const TimePoint paid = share.bucket.reserve(now, cost);
  share.whole = paid + std::chrono::ceil<Duration>(std::chrono::duration<double>(burst_ / rate_));
  return paid;
}

}  // namespace score::node
