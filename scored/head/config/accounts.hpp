#pragma once
// Accounts, fair shares and limits of what runs: the tables [accounts.NAME] and [fair_share], and
// some keys of [limits], of scored.toml(5). Pure.

#include "base/config/config.hpp"
#include "base/limits.hpp"
#include "base/model/model.hpp"
#include "base/result.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

inline constexpr std::size_t kMaxAccounts = 1'000;
// Of all accounts: the directory of users is asked for each of them.
inline constexpr std::size_t kMaxAccountGroups = 256;

// Of what has a place at the same time, and of the use; 0: no limit. A job beyond one waits.
struct RunningLimits {
  std::uint32_t max_running_jobs = 0;
  std::uint32_t max_nodes = 0;            // of all its jobs; a node counts once per job
  Bytes max_memory{0};                    // of all its jobs and their nodes
  std::uint64_t max_scheduled_hours = 0;  // cores x scheduled time, decayed as the use is

  [[nodiscard]] bool any() const { return *this != RunningLimits(); }

  friend bool operator==(const RunningLimits&, const RunningLimits&) = default;
};

struct Account {
  std::string name;
  bool is_open = true;             // everyone may use it
  std::vector<std::string> users;  // if it is not open: names, numbers, groups as "@group"
  std::uint32_t shares = 1;        // compared with those of the other accounts
  std::uint32_t max_jobs = 0;      // queued or running; 0: no limit. One more is refused
  RunningLimits limits;

  friend bool operator==(const Account&, const Account&) = default;
};

struct AccountRules {
  std::vector<Account> accounts;  // by name
  std::string default_account;    // of jobs without --account, if their user may use it
  Duration half_life{0};          // of the use; 0: no fair shares, and the use does not decay
  bool shares_weights = true;     // shares also change how running jobs share their time
  RunningLimits per_user;         // for each user, except operators, root and exempt users

  [[nodiscard]] const Account* find(std::string_view name) const;
  // Of all accounts, each once, without the '@'.
  [[nodiscard]] std::vector<std::string> groups() const;

  friend bool operator==(const AccountRules&, const AccountRules&) = default;
};

// Who submits a job.
struct Submitter {
  std::string name;
  UserId user;
  bool is_limited = true;          // no operator, root or exempt user
  std::set<std::string> groups{};  // of AccountRules::groups()
};

[[nodiscard]] bool may_use(const Account& account, const Submitter& who);

// Problems are the sections'. limits: the table [limits].
[[nodiscard]] AccountRules read_accounts(ConfigSection& root, ConfigSection& limits);

// The account of a job for which its user asked for this one; "" asks for the user's own. "": there
// are no accounts, or the user needs none. Errors: NotFound, Denied, Malformed (the user has
// several).
[[nodiscard]] Result<std::string> choose_account(const AccountRules& rules, const Submitter& who,
                                                 const std::string& wanted);

// Whether the job alone is more than a limit allows. Errors: Denied, naming the limit.
[[nodiscard]] Status check_alone(const AccountRules& rules, const Submitter& who,
                                 const ResourceRequest& request);
// jobs: those that the account has already. Errors: Denied.
[[nodiscard]] Status check_account_jobs(const AccountRules& rules, const std::string& account,
                                        std::size_t jobs);

}  // namespace score::head
