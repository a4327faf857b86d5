#include "scored/node/attempts/output_budget.hpp"

#include <algorithm>

namespace score::node {

namespace {

constexpr std::size_t kManyUsers = 256;  // above this, users with a full share are removed

double cost_of(std::size_t bytes) {
  return static_cast<double>(OutputBudget::kPerFrame.count()) +
         static_cast<double>(bytes) * OutputBudget::kNanosecondsPerByte;
}

bool begins_within(const JobHere& one, const JobHere& other) {
  return !one.cores.empty() &&
         std::ranges::find(other.cores, one.cores.front()) != other.cores.end();
}

}  // namespace

bool competes(const JobHere& one, const JobHere& other) {
  if (one.job == other.job) return false;
  if (!one.user || one.user != other.user) return true;
  return !begins_within(one, other) && !begins_within(other, one);
}

OutputBudget::OutputBudget(std::size_t processors)
    : rate_(kShare * 1e9 * static_cast<double>(std::max<std::size_t>(processors, 1))) {}

TimePoint OutputBudget::reserve(UserId user, std::size_t bytes, TimePoint now) {
  if (users_.size() >= kManyUsers) {
    std::erase_if(users_, [now](const auto& entry) { return entry.second.whole <= now; });
  }
  const double burst = rate_ * std::chrono::duration<double>(kBurst).count();
  Share& share = users_.try_emplace(user, Share{TokenBucket(rate_, burst), now}).first->second;
  const TimePoint paid = share.bucket.reserve(now, cost_of(bytes));
  share.whole = paid + kBurst;
  if (paid <= now) return now;
  const auto batches = (paid.time_since_epoch() + kBatch - Duration{1}) / kBatch;
  return TimePoint(batches * kBatch);
}

}  // namespace score::node
