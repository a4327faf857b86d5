#include "scored/head/cluster/limit_gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace score::head {
namespace {

constexpr double kHour = 3600;
// Fair share changes weights of jobs by at most this factor: a user who has used nothing gets four
// slices, while one who used at least twice the own share gets one.
constexpr double kMostBoost = 4;
// Two factors that differ by less count as equal, because the order of almost equal users would
// change at each refresh.
constexpr double kSame = 1e-6;

std::uint32_t boost_of(double factor) {
  return static_cast<std::uint32_t>(1 + std::floor((kMostBoost - 1) * factor + kSame));
}

LimitGate::Count needs_of(const gang::Job& job, std::size_t nodes) {
  return {1, nodes, Bytes(job.shape.memory.value() * nodes)};
}

template <class Map, class Key>
auto found(const Map& map, const Key& key) {
  const auto it = map.find(key);
  return it == map.end() ? typename Map::mapped_type{} : it->second;
}

}  // namespace

// ---- limits -------------------------------------------------------------------------------------

LimitGate::Limit LimitGate::first_limit(const RunningLimits& limits, const Count& has, double hours,
                                        const Count& needs) {
  if (limits.max_running_jobs > 0 && has.jobs >= limits.max_running_jobs) return Limit::Jobs;
  if (limits.max_nodes > 0 && has.nodes + needs.nodes > limits.max_nodes) return Limit::Nodes;
  if (limits.max_memory > Bytes(0) && has.memory + needs.memory > limits.max_memory) {
    return Limit::Memory;
  }
  const auto most = static_cast<double>(limits.max_scheduled_hours);
  return most > 0 && hours >= most ? Limit::Hours : Limit::None;
}

LimitGate::Limit LimitGate::of_its_user(const gang::Job& job, const Count& needs) const {
  if (!rules_.per_user.any()) return Limit::None;
  const Limit limit =
      first_limit(rules_.per_user, of_user(job.user), found(user_hours_, job.user), needs);
  return limit == Limit::None || is_limited_(job.user) ? limit : Limit::None;
}

LimitGate::Limit LimitGate::of_its_account(const gang::Job& job, const Count& needs) const {
  const std::string& name = job.request.account;
  const Account* account = name.empty() ? nullptr : rules_.find(name);
  if (account == nullptr || !account->limits.any()) return Limit::None;
  return first_limit(account->limits, of_account(name), found(account_hours_, name), needs);
}

LimitGate::Limit LimitGate::of_its_partition(const gang::Job& job, const Count& needs) const {
  const std::string& name = job.request.partition;
  const PartitionRule* partition = name.empty() ? nullptr : partitions_.find(name);
  if (partition == nullptr || !partition->limits.any()) return Limit::None;
  const Limit limit = first_limit(partition->limits, of_partition(name, job.user), 0, needs);
  return limit == Limit::None || is_limited_(job.user) ? limit : Limit::None;
}

bool LimitGate::is_open(const gang::Job& job, std::size_t nodes) const {
  const Count needs = needs_of(job, nodes);
  return of_its_user(job, needs) == Limit::None && of_its_partition(job, needs) == Limit::None &&
         of_its_account(job, needs) == Limit::None;
}

std::string LimitGate::why_closed(const gang::Job& job, std::size_t nodes) const {
  const Count needs = needs_of(job, nodes);
  const auto text = [&](Limit limit, const RunningLimits& limits, const std::string& table,
                        const std::string& who, const Count& has, double hours) -> std::string {
    switch (limit) {
      case Limit::Jobs:
        return fmt::format("{}.max_running_jobs is {}: {} has {} running", table,
                           limits.max_running_jobs, who, has.jobs);
      case Limit::Nodes:
        return fmt::format("{}.max_nodes is {}: {} uses {}, the job needs {}", table,
                           limits.max_nodes, who, has.nodes, needs.nodes);
      case Limit::Memory:
        return fmt::format("{}.max_memory is {}: {} uses {}, the job needs {}", table,
                           limits.max_memory, who, has.memory, needs.memory);
      case Limit::Hours:
        return fmt::format("{}.max_scheduled_hours is {}: {} has used {:.1f} core hours", table,
                           limits.max_scheduled_hours, who, hours);
      case Limit::None:
        return {};
    }
    return {};
  };
  const Limit user = of_its_user(job, needs);
  if (user != Limit::None) {
    return text(user, rules_.per_user, "limits", "its user", of_user(job.user),
                found(user_hours_, job.user));
  }
  const std::string& in = job.request.partition;
  const Limit partition = of_its_partition(job, needs);
  if (partition != Limit::None) {
    return text(partition, partitions_.find(in)->limits, "partitions." + in, "its user",
                of_partition(in, job.user), 0);
  }
  const Account* account = rules_.find(job.request.account);
  if (account == nullptr) return {};
  const std::string& name = account->name;
  return text(of_its_account(job, needs), account->limits, "accounts." + name, "account " + name,
              of_account(name), found(account_hours_, name));
}

// ---- what has a place ---------------------------------------------------------------------------

void LimitGate::placed(const gang::Job& job) {
  const Place place{{job.request.account, job.user},
                    job.request.partition,
                    needs_of(job, job.cells.nodes.size())};
  if (places_.try_emplace(job.id, place).second) count(place, 1);
}

void LimitGate::unplaced(const gang::Job& job) {
  const auto place = places_.find(job.id);
  if (place == places_.end()) return;
  count(place->second, -1);
  places_.erase(place);
}

void LimitGate::count(const Place& place, int sign) {
  const auto add = [&](auto& map, const auto& key) {
    Count& sum = map[key];
    sum.jobs += static_cast<std::uint32_t>(sign) * place.count.jobs;
    sum.nodes += static_cast<std::uint64_t>(static_cast<std::int64_t>(sign)) * place.count.nodes;
    sum.memory = sign > 0 ? sum.memory + place.count.memory : sum.memory - place.count.memory;
    if (sum == Count()) map.erase(key);
  };
  add(users_, std::pair(std::string(), place.key.second));
  if (!place.partition.empty()) add(users_, std::pair(place.partition, place.key.second));
  add(accounts_, place.key.first);
  add(both_, place.key);
}

LimitGate::Count LimitGate::of_user(UserId user) const {
  return of_partition({}, user);
}

LimitGate::Count LimitGate::of_partition(const std::string& partition, UserId user) const {
  return found(users_, std::pair(partition, user));
}

LimitGate::Count LimitGate::of_account(const std::string& account) const {
  return found(accounts_, account);
}

LimitGate::Count LimitGate::of(const UsageTracker::Key& key) const {
  return found(both_, key);
}

// ---- fair shares --------------------------------------------------------------------------------

LimitGate::Standing LimitGate::standing_of(const UsageTracker::Key& key) const {
  const auto known = standings_.find(key);
  if (known != standings_.end() || !tracker_.is_on()) {
    return known == standings_.end() ? Standing{} : known->second;
  }
  Standing out;  // a new user
  out.factor = tracker_.user(key, totals_).factor;
  for (const auto& [other, standing] : standings_) out.rank += standing.factor > out.factor + kSame;
  out.boost = rules_.shares_weights ? boost_of(out.factor) : 1;
  return out;
}

std::int64_t LimitGate::rank(const gang::Job& job) const {
  return standing_of({job.request.account, job.user}).rank;
}

std::uint32_t LimitGate::boost(const gang::Job& job) const {
  return standing_of({job.request.account, job.user}).boost;
}

bool LimitGate::refresh(WallTime now) {
  totals_ = tracker_.totals(now);
  std::map<UsageTracker::Key, Standing> standings;
  std::vector<double> factors;
  for (const UsageTracker::Key& key :
       tracker_.is_on() ? tracker_.keys() : std::vector<UsageTracker::Key>()) {
    const double factor = tracker_.user(key, totals_).factor;
    standings[key] = {factor, 0, rules_.shares_weights ? boost_of(factor) : 1};
    factors.push_back(factor);
  }
  std::ranges::sort(factors, std::greater<>());
  for (auto& [key, standing] : standings) {
    const auto larger = std::ranges::partition_point(
        factors, [&](double factor) { return factor > standing.factor + kSame; });
    standing.rank = larger - factors.begin();
  }
  bool has_changed = standings != standings_;
  standings_ = std::move(standings);
  return refresh_hours(now) || has_changed;
}

// Returns true if use has crossed a limit of hours, in either direction.
bool LimitGate::refresh_hours(WallTime now) {
  bool has_changed = false;
  const auto keep = [&](auto& map, const auto& key, double core_seconds, std::uint64_t most) {
    const double hours = core_seconds / kHour;
    const auto limit = static_cast<double>(most);
    has_changed |= (found(map, key) >= limit) != (hours >= limit);
    map[key] = hours;
  };
  for (const Account& account : rules_.accounts) {
    const std::uint64_t most = account.limits.max_scheduled_hours;
    if (most == 0) continue;
    const auto used = totals_.accounts.find(account.name);
    keep(account_hours_, account.name, used == totals_.accounts.end() ? 0 : used->second.use, most);
  }
  if (rules_.per_user.max_scheduled_hours == 0) return has_changed;
  std::map<UserId, double> sums;
  for (const UsageTracker::Key& key : tracker_.keys()) sums[key.second] += tracker_.of(key, now);
  for (const auto& [user, sum] : sums) {
    keep(user_hours_, user, sum, rules_.per_user.max_scheduled_hours);
  }
  return has_changed;
}

}  // namespace score::head
