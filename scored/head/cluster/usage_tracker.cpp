#include "scored/head/cluster/usage_tracker.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace score::head {
namespace {

constexpr double kMillis = 1e3;
constexpr double kLeastKept = 1e-3;  // core seconds

double factor_of(double used, double share) {
  return share > 0 ? std::exp2(-used / share) : 0;
}

// The number of members of a group is unknown.
bool has_groups(const Account& account) {
  return std::ranges::any_of(account.users,
                             [](const std::string& user) { return user.starts_with('@'); });
}

std::int64_t millis(double core_seconds) {
  constexpr auto kMost = static_cast<double>(std::numeric_limits<std::int64_t>::max() / 2);
  return static_cast<std::int64_t>(std::min(core_seconds * kMillis, kMost));
}

}  // namespace

void UsageTracker::set_rules(const AccountRules& rules, WallTime now) {
  for (auto& [key, use] : uses_) use = {decayed(use, now), std::max(use.at, now)};
  half_life_ = rules.half_life;
  accounts_.clear();
  for (const Account& account : rules.accounts) {
    const bool is_listed = !account.is_open && !has_groups(account);
    accounts_[account.name] = {account.shares, is_listed ? account.users.size() : 0};
  }
}

// ---- use ----------------------------------------------------------------------------------------

void UsageTracker::restore(const UseSum& sum, WallTime now) {
  const auto core_seconds = static_cast<double>(std::max<std::int64_t>(sum.core_ms, 0)) / kMillis;
  const Use use{core_seconds, sum.at};
  if (decayed(use, now) >= kLeastKept) uses_[{sum.account, sum.user}] = use;
}

UseSum UsageTracker::charge(const Key& key, double core_seconds, WallTime now) {
  Use& use = uses_[key];
  use = {decayed(use, now) + std::max(core_seconds, 0.0), std::max(use.at, now)};
  return {key.first, key.second, millis(use.core_seconds), use.at};
}

bool UsageTracker::note_user(const Key& key) {
  return uses_.try_emplace(key).second;
}

double UsageTracker::decayed(const Use& use, WallTime now) const {
  if (half_life_ <= Duration(0) || now <= use.at) return use.core_seconds;
  const auto passed = std::chrono::duration<double>(now - use.at);
  return use.core_seconds * std::exp2(-(passed / std::chrono::duration<double>(half_life_)));
}

double UsageTracker::of(const Key& key, WallTime now) const {
  const auto found = uses_.find(key);
  return found == uses_.end() ? 0 : decayed(found->second, now);
}

UsageTracker::Totals UsageTracker::totals(WallTime now) const {
  Totals out;
  out.now = now;
  for (const auto& [name, entry] : accounts_) out.shares += entry.shares;
  for (const auto& [key, use] : uses_) {
    const auto [account, is_new] = out.accounts.try_emplace(key.first);
    if (is_new && !accounts_.contains(key.first)) out.shares += entitled(key.first).shares;
    const double core_seconds = decayed(use, now);
    out.all += core_seconds;
    account->second.use += core_seconds;
    ++account->second.known;
  }
  return out;
}

std::vector<UsageTracker::Key> UsageTracker::keys() const {
  std::vector<Key> keys;
  for (const auto& [key, use] : uses_) keys.push_back(key);
  return keys;
}

// ---- fair shares --------------------------------------------------------------------------------

// Returns one share for jobs without an account, and for accounts that have left the configuration.
UsageTracker::Entitled UsageTracker::entitled(const std::string& account) const {
  const auto found = accounts_.find(account);
  return found == accounts_.end() ? Entitled{} : found->second;
}

UsageTracker::Factors UsageTracker::account(const std::string& name, const Totals& totals) const {
  const auto found = totals.accounts.find(name);
  const bool is_counted = accounts_.contains(name) || found != totals.accounts.end();
  const double shares = entitled(name).shares;
  Factors out;
  out.share = shares / (is_counted ? totals.shares : totals.shares + shares);
  if (found != totals.accounts.end() && totals.all > 0) out.used = found->second.use / totals.all;
  out.factor = factor_of(out.used, out.share);
  return out;
}

UsageTracker::Factors UsageTracker::user(const Key& key, const Totals& totals) const {
  const Factors whole = account(key.first, totals);
  const auto found = totals.accounts.find(key.first);
  std::size_t users = entitled(key.first).listed;
  if (users == 0) {
    const std::size_t known = found == totals.accounts.end() ? 0 : found->second.known;
    users = known + (uses_.contains(key) ? 0 : 1);
  }
  const auto count = static_cast<double>(std::max<std::size_t>(users, 1));
  Factors out;
  out.share = 1 / count;
  out.used = totals.all > 0 ? of(key, totals.now) / totals.all : 0;
  const double effective = out.used + (whole.used - out.used) / count;
  out.factor = factor_of(effective, whole.share * out.share);
  return out;
}

}  // namespace score::head
