#pragma once
// This header declares accounts, fair shares and limits of running jobs: the tables [accounts.NAME]
// and [fair_share], and some keys of [limits], of scored.toml(5). It is pure.

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
// This limit holds for all accounts together, because the user directory is asked for each group.
inline constexpr std::size_t kMaxAccountGroups = 256;

// These limits apply to jobs that have a place at the same time, and to use; 0 means no limit. A
// job that would exceed a limit waits.
struct RunningLimits {
  std::uint32_t max_running_jobs = 0;
  std::uint32_t max_nodes = 0;            // of all its jobs; a node counts once per job
  Bytes max_memory{0};                    // of all its jobs and their nodes
  std::uint64_t max_scheduled_hours = 0;  // cores x scheduled time, decayed like the use

  [[nodiscard]] bool any() const { return *this != RunningLimits(); }

  friend bool operator==(const RunningLimits&, const RunningLimits&) = default;
};

struct Account {
  std::string name;
  bool is_open = true;             // every user may use it
  std::vector<std::string> users;  // if it is not open: names, numbers, or groups as "@group"
  std::uint32_t shares = 1;        // relative to those of the other accounts
  std::uint32_t max_jobs = 0;      // queued or running; 0: no limit. Further jobs are rejected
  RunningLimits limits;

  friend bool operator==(const Account&, const Account&) = default;
};

struct AccountRules {
  std::vector<Account> accounts;  // sorted by name
  std::string default_account;    // for jobs without --account, if their user may use it
  Duration half_life{0};          // of the use; 0: no fair shares, and the use does not decay
  bool shares_weights = true;     // shares also change how running jobs share their time
  RunningLimits per_user;         // for each user, except operators, root and exempt users

  [[nodiscard]] const Account* find(std::string_view name) const;
  // Returns the groups of all accounts, each once, without the '@'.
  [[nodiscard]] std::vector<std::string> groups() const;

  friend bool operator==(const AccountRules&, const AccountRules&) = default;
};

// The submitter is the user who submits a job.
struct Submitter {
  std::string name;
  UserId user;
  bool is_limited = true;          // false for operators, root and exempt users
  std::set<std::string> groups{};  // those of AccountRules::groups() that the user is in
};

// Returns whether the list names the user: by name, by number, or a group of the user as "@group".
[[nodiscard]] bool is_named(const std::vector<std::string>& users, const Submitter& who);
[[nodiscard]] bool may_use(const Account& account, const Submitter& who);

// Reads the account tables; problems become errors of the sections. `limits` is the table [limits].
[[nodiscard]] AccountRules read_accounts(ConfigSection& root, ConfigSection& limits);

// Returns the account of a job whose user asked for `wanted`; "" asks for the user's own account.
// Returns "" if there are no accounts, or if the user needs none. Errors: NotFound, Denied,
// Malformed (the user has several accounts).
[[nodiscard]] Result<std::string> choose_account(const AccountRules& rules, const Submitter& who,
                                                 const std::string& wanted);

// Checks whether the job alone exceeds a limit of the table. Errors: Denied, naming the limit.
[[nodiscard]] Status check_one(const RunningLimits& limits, std::string_view table,
                               const ResourceRequest& request);
// Checks whether the job alone exceeds a limit. Errors: Denied, naming the limit.
[[nodiscard]] Status check_alone(const AccountRules& rules, const Submitter& who,
                                 const ResourceRequest& request);
// Checks the limit of queued and running jobs; `jobs` is how many the account already has. Errors:
// Denied.
[[nodiscard]] Status check_account_jobs(const AccountRules& rules, const std::string& account,
                                        std::size_t jobs);

}  // namespace score::head
