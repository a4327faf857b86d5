#include "scored/head/jobs/fair_shares.hpp"

#include "base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace score::head {
namespace {

constexpr Duration kLeastPause = 1s;
constexpr std::uint32_t kUnknownUser = UINT32_MAX;

void add_limits(const RunningLimits& limits, std::uint32_t max_jobs, wire::ShareRow& row) {
  const auto add = [&row](std::string_view name, const auto& value) {
    row.add_limits(fmt::format("{} {}", name, value));
  };
  if (max_jobs > 0) add("jobs", max_jobs);
  if (limits.max_running_jobs > 0) add("running_jobs", limits.max_running_jobs);
  if (limits.max_nodes > 0) add("nodes", limits.max_nodes);
  if (limits.max_memory > Bytes(0)) add("memory", limits.max_memory);
  if (limits.max_scheduled_hours > 0) add("scheduled_hours", limits.max_scheduled_hours);
}

void set_numbers(const UsageTracker::Factors& factors, double core_seconds,
                 const LimitGate::Count& count, wire::ShareRow& row) {
  constexpr double kMost = 9e18;  // fits into 64 bits
  row.set_share(factors.share);
  row.set_used(factors.used);
  row.set_factor(factors.factor);
  row.set_core_ns(static_cast<std::int64_t>(std::min(core_seconds * 1e9, kMost)));
  row.set_running_jobs(count.jobs);
  row.set_nodes(static_cast<std::uint32_t>(count.nodes));
  row.set_memory_bytes(count.memory.value());
}

}  // namespace

FairShares::FairShares(HeadContext& head)
    : head_(head),
      tracker_(head_.config.accounts),
      gate_(head_.config.accounts, head_.config.partitions, tracker_, [this](UserId user) {
        return head_.users.role(user, now()) == proto::Role::OtherUser &&
               !head_.users.is_exempt(user, now());
      }) {
  head_.runner.cluster().set_gate(gate_);
}

void FairShares::restore(const std::vector<UseSum>& uses) {
  const WallTime wall = head_.runner.wall();
  for (const UseSum& sum : uses) tracker_.restore(sum, wall);
  (void)gate_.refresh(wall);
}

void FairShares::note(const JobInfo& job) {
  // Scout commands and operators' jobs may have no account; they have no share until they use
  // something.
  if (job.account.empty() && !head_.config.accounts.accounts.empty()) return;
  const bool is_new = job.step_of == JobId(0) && tracker_.note_user({job.account, job.user});
  if (!is_new || !tracker_.is_on() || !refreshed_) return;
  if (gate_.refresh(head_.runner.wall())) {
    head_.runner.perform(head_.runner.cluster().reorder(now()));
  }
}

// ---- submissions --------------------------------------------------------------------------------

Status FairShares::admit(const Peer& peer, bool is_limited, ResourceRequest& request) const {
  const AccountRules& rules = head_.config.accounts;
  const Submitter who{peer.name, peer.user, is_limited, head_.users.groups(peer.user, now())};
  const auto account = choose_account(rules, who, request.account);
  if (!account) return account.error();
  request.account = *account;
  if (auto fits = check_alone(rules, who, request); !fits) return fits;
  const PartitionRules& partitions = head_.config.partitions;
  if (auto may = enter_partition(partitions, who, request); !may) return may;
  const std::string& partition = request.partition;
  const std::size_t jobs = head_.jobs.jobs_in(partition, peer.user);
  if (auto fits = check_partition_jobs(partitions, who, partition, jobs); !fits) return fits;
  return check_account_jobs(rules, *account, head_.jobs.jobs_of(*account));
}

Status FairShares::admit_change(UserId owner, bool is_limited, bool names_account,
                                ResourceRequest& request) const {
  const AccountRules& rules = head_.config.accounts;
  const Submitter who{head_.users.name(owner, now()), owner, is_limited,
                      head_.users.groups(owner, now())};
  if (names_account) {
    const auto account = choose_account(rules, who, request.account);
    if (!account) return account.error();
    request.account = *account;
  }
  return check_alone(rules, who, request);
}

// ---- use ----------------------------------------------------------------------------------------

std::optional<UseSum> FairShares::charge(Job& job) {
  if (job.info.step_of != JobId(0)) return std::nullopt;
  const Duration scheduled = job.progress.scheduled;
  const Duration before = std::exchange(job.charged, scheduled);
  std::size_t cores = 0;
  for (const auto& on_node : job.progress.placement.cores) cores += on_node.size();
  if (cores == 0 || scheduled <= Duration(0)) return std::nullopt;
  const auto more =
      std::chrono::duration<double>(scheduled >= before ? scheduled - before : scheduled);
  return tracker_.charge({job.info.account, job.info.user},
                         more.count() * static_cast<double>(cores), head_.runner.wall());
}

void FairShares::ended() {
  refresh();
}

void FairShares::refresh() {
  if (refreshed_ && now() - *refreshed_ < kLeastPause) return;
  refreshed_ = now();
  if (!gate_.refresh(head_.runner.wall())) return;
  head_.runner.perform(head_.runner.cluster().reorder(now()));
}

void FairShares::reload() {
  tracker_.set_rules(head_.config.accounts, head_.runner.wall());
  (void)gate_.refresh(head_.runner.wall());
  head_.runner.perform(head_.runner.cluster().reorder(now()));
}

// ---- the list -----------------------------------------------------------------------------------

wire::ShareList FairShares::list(const Peer& peer) {
  wire::ShareList list;
  list.set_half_life_ns(tracker_.half_life().count());
  const auto totals = tracker_.totals(head_.runner.wall());
  std::set<std::string> names;
  for (const Account& account : head_.config.accounts.accounts) names.insert(account.name);
  for (const auto& [name, account] : totals.accounts) names.insert(name);
  const bool sees_all = !head_.config.monitor.is_private || peer.role != proto::Role::OtherUser;
  for (const std::string& name : names) {
    add_account(use_of(name, totals), list);
    for (const Row& row : users_of(name)) {
      if (sees_all || row.key.second == peer.user) add_user(row, totals, list);
    }
  }
  return list;
}

// Returns users who used something or have jobs, and users who may use the account.
std::vector<FairShares::Row> FairShares::users_of(const std::string& account) {
  std::vector<Row> rows;
  for (const UsageTracker::Key& key : tracker_.keys()) {
    if (key.first == account) rows.push_back({key, head_.users.name(key.second, now())});
  }
  const Account* known = head_.config.accounts.find(account);
  for (const std::string& name : known == nullptr ? std::vector<std::string>() : known->users) {
    if (name.starts_with('@')) continue;  // group members are listed once they have jobs
    const auto number = parse_number<std::uint32_t>(name);
    const auto user = number ? std::optional(UserId(*number)) : head_.users.named(name, now());
    const bool is_there = std::ranges::any_of(
        rows, [&](const Row& row) { return row.name == name || row.key.second == user; });
    if (!is_there) rows.push_back({{account, user.value_or(UserId(kUnknownUser))}, name});
  }
  std::ranges::sort(rows, {}, &Row::name);
  return rows;
}

FairShares::AccountUse FairShares::use_of(const std::string& name,
                                          const UsageTracker::Totals& totals) const {
  AccountUse use;
  use.name = name;
  use.shares = tracker_.account(name, totals);
  const auto used = totals.accounts.find(name);
  if (used != totals.accounts.end()) use.core_seconds = used->second.use;
  use.jobs = head_.jobs.jobs_of(name);
  use.placed = gate_.of_account(name);
  if (const Account* account = head_.config.accounts.find(name)) {
    use.max_jobs = account->max_jobs;
    use.limits = account->limits;
  }
  return use;
}

std::vector<FairShares::AccountUse> FairShares::accounts() const {
  const auto totals = tracker_.totals(head_.runner.wall());
  std::vector<AccountUse> out;
  for (const Account& account : head_.config.accounts.accounts) {
    out.push_back(use_of(account.name, totals));
  }
  return out;
}

void FairShares::add_account(const AccountUse& use, wire::ShareList& list) {
  wire::ShareRow& row = *list.add_rows();
  row.set_account(use.name);
  set_numbers(use.shares, use.core_seconds, use.placed, row);
  row.set_jobs(static_cast<std::uint32_t>(use.jobs));
  add_limits(use.limits, static_cast<std::uint32_t>(use.max_jobs), row);
}

void FairShares::add_user(const Row& user, const UsageTracker::Totals& totals,
                          wire::ShareList& list) {
  wire::ShareRow& row = *list.add_rows();
  row.set_account(user.key.first);
  row.set_user_name(user.name);
  row.set_user(user.key.second.value());
  set_numbers(tracker_.user(user.key, totals), tracker_.of(user.key, totals.now),
              gate_.of(user.key), row);
  row.set_jobs(static_cast<std::uint32_t>(head_.jobs.jobs_of(user.key.first, user.key.second)));
  add_limits(head_.config.accounts.per_user, head_.config.limits.max_jobs, row);
}

}  // namespace score::head
