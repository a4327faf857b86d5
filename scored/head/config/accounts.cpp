#include "scored/head/config/accounts.hpp"

#include "base/text.hpp"
#include "base/text/hostlist.hpp"
#include "base/text/plain.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace score::head {
namespace {

constexpr std::uint32_t kMostShares = 1'000'000;
constexpr std::uint64_t kMostHours = 1'000'000'000;
constexpr Duration kLeastHalfLife = 1s;
constexpr Duration kMostHalfLife = 24h * 3'650;
constexpr std::size_t kAccountsShown = 16;

RunningLimits read_running_limits(ConfigSection& section) {
  RunningLimits out;
  section.read("max_running_jobs", out.max_running_jobs, 1U, limits::kMaxActiveJobs);
  section.read("max_nodes", out.max_nodes, 1U, UINT32_MAX);
  section.read("max_memory", out.max_memory, Bytes(1));
  section.read("max_scheduled_hours", out.max_scheduled_hours, std::uint64_t{1}, kMostHours);
  return out;
}

Account read_account(const std::string& name, ConfigSection& section) {
  Account out;
  out.name = name;
  if (!is_host_name(name)) section.refuse("users", "account names have letters, digits, '-' only");
  out.is_open = !section.has("users");
  section.read("users", out.users);
  for (const std::string& user : out.users) {
    if (user.empty()) section.refuse("users", "a user has an empty name");
    if (user == "@") section.refuse("users", "a group has an empty name");
    if (std::ranges::count(out.users, user) > 1) {
      section.refuse("users", fmt::format("'{}' is named twice", escape_terminal(user, 80)));
    }
  }
  section.read("shares", out.shares, 1U, kMostShares);
  section.read("max_jobs", out.max_jobs, 1U, limits::kMaxActiveJobs);
  out.limits = read_running_limits(section);
  return out;
}

std::vector<std::string> accounts_of(const AccountRules& rules, const Submitter& who) {
  std::vector<std::string> names;
  for (const Account& account : rules.accounts) {
    if (may_use(account, who)) names.push_back(account.name);
  }
  return names;
}

std::string listed(std::vector<std::string> names) {
  if (names.empty()) return "you are in none";
  const std::size_t count = names.size();
  if (count > kAccountsShown) names.resize(kAccountsShown);
  return fmt::format("yours: {}{}", fmt::join(names, ", "), count > kAccountsShown ? " ..." : "");
}

}  // namespace

bool is_named(const std::vector<std::string>& users, const Submitter& who) {
  const std::string number = std::to_string(who.user.value());
  return std::ranges::any_of(users, [&](const std::string& one) {
    if (one.starts_with('@')) return who.groups.contains(one.substr(1));
    return one == who.name || one == number;
  });
}

bool may_use(const Account& account, const Submitter& who) {
  return account.is_open || is_named(account.users, who);
}

const Account* AccountRules::find(std::string_view name) const {
  const auto found = std::ranges::find(accounts, name, &Account::name);
  return found == accounts.end() ? nullptr : &*found;
}

std::vector<std::string> AccountRules::groups() const {
  std::set<std::string> names;
  for (const Account& account : accounts) {
    for (const std::string& user : account.users) {
      if (user.starts_with('@')) names.insert(user.substr(1));
    }
  }
  return {names.begin(), names.end()};
}

AccountRules read_accounts(ConfigSection& root, ConfigSection& limits) {
  AccountRules out;
  for (auto& [name, section] : root.named_sections("accounts")) {
    out.accounts.push_back(read_account(name, section));
  }
  ConfigSection shares = root.section("fair_share");
  if (out.accounts.size() > kMaxAccounts) {
    shares.refuse("default_account", fmt::format("more than {} accounts", kMaxAccounts));
  }
  if (out.groups().size() > kMaxAccountGroups) {
    shares.refuse("default_account",
                  fmt::format("the accounts name more than {} groups", kMaxAccountGroups));
  }
  shares.read("half_life", out.half_life, 0s, kMostHalfLife);
  if (out.half_life > 0s && out.half_life < kLeastHalfLife) {
    shares.refuse("half_life", "must be \"0s\" (off) or at least \"1s\"");
  }
  shares.read("weights", out.shares_weights);
  shares.read("default_account", out.default_account);
  if (!out.default_account.empty() && out.find(out.default_account) == nullptr) {
    shares.refuse("default_account", fmt::format("there is no table [accounts.{}]",
                                                 escape_terminal(out.default_account, 80)));
  }
  out.per_user = read_running_limits(limits);
  return out;
}

Result<std::string> choose_account(const AccountRules& rules, const Submitter& who,
                                   const std::string& wanted) {
  if (rules.accounts.empty()) {
    if (wanted.empty()) return std::string();
    return fail(Errc::NotFound, "no account {}: this cluster has no accounts", wanted);
  }
  const std::vector<std::string> own = accounts_of(rules, who);
  if (!wanted.empty()) {
    const Account* account = rules.find(wanted);
    if (account == nullptr) return fail(Errc::NotFound, "no account {}; {}", wanted, listed(own));
    if (!who.is_limited || may_use(*account, who)) return wanted;
    return fail(Errc::Denied, "user {} is not in account {}; {}", who.name, wanted, listed(own));
  }
  const Account* standard = rules.find(rules.default_account);
  const bool is_allowed = standard != nullptr && (!who.is_limited || may_use(*standard, who));
  if (is_allowed) return rules.default_account;
  if (own.size() == 1) return own.front();
  if (!who.is_limited) return std::string();
  if (own.empty()) {
    return fail(Errc::Denied, "user {} is in no account; ask an operator for one", who.name);
  }
  return fail(Errc::Malformed, "user {} is in several accounts: choose one with --account ({})",
              who.name, listed(own));
}

Status check_one(const RunningLimits& limits, std::string_view table,
                 const ResourceRequest& request) {
  const std::uint64_t nodes = std::max(request.nodes, 1U);
  if (limits.max_nodes != 0 && nodes > limits.max_nodes) {
    return fail(Errc::Denied, "requested {}; {}.max_nodes of the head is {}",
                counted(nodes, "node"), table, limits.max_nodes);
  }
  const std::uint64_t per_node = request.memory_per_node.value();
  const bool is_more =
      limits.max_memory != Bytes(0) && per_node > limits.max_memory.value() / nodes;
  if (!is_more) return {};
  return fail(Errc::Denied, "requested {} of memory on {}; {}.max_memory of the head is {}",
              request.memory_per_node, counted(nodes, "node"), table, limits.max_memory);
}

Status check_alone(const AccountRules& rules, const Submitter& who,
                   const ResourceRequest& request) {
  if (who.is_limited) {
    if (auto fits = check_one(rules.per_user, "limits", request); !fits) return fits;
  }
  const Account* account = rules.find(request.account);
  if (account == nullptr) return {};
  return check_one(account->limits, "accounts." + account->name, request);
}

Status check_account_jobs(const AccountRules& rules, const std::string& name, std::size_t jobs) {
  const Account* account = rules.find(name);
  if (account == nullptr || account->max_jobs == 0 || jobs < account->max_jobs) return {};
  return fail(Errc::Denied,
              "account {} has {} queued or running; accounts.{}.max_jobs of the head is {}", name,
              counted(jobs, "job"), name, account->max_jobs);
}

}  // namespace score::head
