#pragma once
// Accounts, fair shares and limits of what runs, for the rest of the head: checks submissions,
// charges jobs for what they used, and tells the cluster when the order of waiting jobs or a limit
// has changed. Decisions are UseBook's and LimitGate's.

#include "proto/client.pb.h"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/shares/limit_gate.hpp"

#include <optional>
#include <string>
#include <vector>

namespace score::head {

class ShareDesk {
 public:
  struct Parts {  // all outlive it
    ClusterRunner& runner;
    const HeadConfig& config;
    const JobTable& jobs;
    Users& users;
  };

  // Becomes the cluster's gate.
  explicit ShareDesk(Parts parts);

  // What the store has, before the first job.
  void restore(const std::vector<UseSum>& uses);
  // A job of this user is accepted, or was before a restart.
  void note(const JobInfo& job);

  // Gives the request its account. Errors: those of choose_account(), check_alone() and
  // check_account_jobs().
  [[nodiscard]] Status admit(const Peer& peer, bool is_limited, ResourceRequest& request) const;

  // Charges the job with what it used since the last call; the result is stored together with its
  // progress. nullopt: it used nothing yet.
  [[nodiscard]] std::optional<UseSum> charge(Job& job);

  // ---- called in turn
  void ended();  // a job
  // What has been used, and thus the order, may have changed; at most once per second.
  void refresh();
  // The configuration was changed.
  void reload();

  // Accounts, each with its users. The reply has no tag.
  [[nodiscard]] wire::ShareList list(const Peer& peer);

  struct AccountUse {
    std::string name;
    UseBook::Factors shares;
    double core_seconds = 0;  // decayed
    std::size_t jobs = 0;     // that wait or run
    LimitGate::Count placed;
    std::size_t max_jobs = 0;
    RunningLimits limits;
  };

  // Of the accounts of the configuration, by name.
  [[nodiscard]] std::vector<AccountUse> accounts() const;

 private:
  struct Row {
    UseBook::Key key;
    std::string name;
  };

  [[nodiscard]] std::vector<Row> users_of(const std::string& account);
  [[nodiscard]] AccountUse use_of(const std::string& account, const UseBook::Totals& totals) const;
  static void add_account(const AccountUse& use, wire::ShareList& list);
  void add_user(const Row& row, const UseBook::Totals& totals, wire::ShareList& list);

  [[nodiscard]] TimePoint now() const { return parts_.runner.now(); }

  Parts parts_;
  UseBook book_;
  LimitGate gate_;
  std::optional<TimePoint> refreshed_;
};

}  // namespace score::head
