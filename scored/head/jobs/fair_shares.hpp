#pragma once
// FairShares manages accounts, fair shares, and the limits of running jobs and of partitions for
// the rest of the head. It checks submissions, charges jobs for their use, and notifies the cluster
// when the order of waiting jobs or a limit has changed. UsageTracker and LimitGate decide.

#include "proto/client.pb.h"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/cluster/limit_gate.hpp"
#include "scored/head/jobs/job_table.hpp"

#include <optional>
#include <string>
#include <vector>

namespace score::head {

class FairShares {
 public:
  // Registers its gate with the cluster.
  explicit FairShares(HeadContext& head);

  // Loads the sums from the store; must be called before the first job.
  void restore(const std::vector<UseSum>& uses);
  // Records that a job of this user is accepted, or was before a restart.
  void note(const JobInfo& job);

  // Sets the account of the request, and what its partition determines. Errors: those of
  // choose_account(), check_alone(), enter_partition() and the checks of numbers of jobs.
  [[nodiscard]] Status admit(const Peer& peer, bool is_limited, ResourceRequest& request) const;

  // Checks a changed request of a job of this user. If it `names_account`, chooses the account
  // again. Errors: as admit().
  [[nodiscard]] Status admit_change(UserId owner, bool is_limited, bool names_account,
                                    ResourceRequest& request) const;

  // Charges the job for its use since the last call; the caller stores the result together with the
  // job's progress. Returns nullopt if it has used nothing yet.
  [[nodiscard]] std::optional<UseSum> charge(Job& job);

  // ---- called in turn
  void ended();  // a job
  // Updates the order, because use may have changed; does so at most once per second.
  void refresh();
  // Must be called when the configuration has changed.
  void reload();

  // Returns accounts, each with its users. The reply has no tag.
  [[nodiscard]] wire::ShareList list(const Peer& peer);

  struct AccountUse {
    std::string name;
    UsageTracker::Factors shares;
    double core_seconds = 0;  // decayed
    std::size_t jobs = 0;     // waiting or running
    LimitGate::Count placed;
    std::size_t max_jobs = 0;
    RunningLimits limits;
  };

  // Returns the accounts of the configuration, sorted by name.
  [[nodiscard]] std::vector<AccountUse> accounts() const;

 private:
  struct Row {
    UsageTracker::Key key;
    std::string name;
  };

  [[nodiscard]] std::vector<Row> users_of(const std::string& account);
  [[nodiscard]] AccountUse use_of(const std::string& account,
                                  const UsageTracker::Totals& totals) const;
  static void add_account(const AccountUse& use, wire::ShareList& list);
  void add_user(const Row& row, const UsageTracker::Totals& totals, wire::ShareList& list);

  [[nodiscard]] TimePoint now() const { return head_.runner.now(); }

  HeadContext& head_;
  UsageTracker tracker_;
  LimitGate gate_;
  std::optional<TimePoint> refreshed_;
};

}  // namespace score::head
