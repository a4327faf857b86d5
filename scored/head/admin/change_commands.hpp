#pragma once
// The command that changes what a job's submission requested. A changed request must pass the
// checks of a submission. All keys of a command apply, or none.

#include "scored/head/admin/command_steps.hpp"
#include "scored/head/admin/job_change.hpp"
#include "scored/head/jobs/arrays.hpp"
#include "scored/head/jobs/fair_shares.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/jobs/submissions.hpp"
#include "scored/head/jobs/waiting_jobs.hpp"
#include "scored/head/reservations/reservation_manager.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

class ChangeCommands {
 public:
  struct Parts {  // all must outlive the object
    Submissions& submissions;
    Arrays& arrays;
    WaitingJobs& waiting;
    FairShares& shares;
    const ReservationManager& reservations;
  };

  ChangeCommands(HeadContext& head, const Parts& parts) : head_(head), parts_(parts) {}

  // See ClusterCommands.
  Result<Changes> check(const Peer& peer, const ChangeJob& command);
  Result<Effect> prepare(const Peer& peer, const ChangeJob& command);

  // Stores the request of the job, or of the array and its tasks, as it is in memory.
  void restore(JobId id);
  // Returns the line for the user; empty if the whole job was changed.
  [[nodiscard]] std::string reply_of(const ChangeJob& command) const;

 private:
  // The result for one job.
  struct Planned {
    JobId id;
    Requested request;
  };

  [[nodiscard]] Result<Job*> changeable(JobId id);
  [[nodiscard]] std::vector<JobId> targets(const Job& job, std::span<const JobKey> keys) const;
  [[nodiscard]] Result<std::vector<Planned>> plan(const Peer& peer, const ChangeJob& command);
  [[nodiscard]] Result<Planned> plan_one(const Peer& peer, const Job& job, const JobChange& change);
  // Checks the changed request, and sets its account.
  [[nodiscard]] Status judge(const Peer& peer, const Job& job, std::span<const JobKey> keys,
                             Requested& after);
  [[nodiscard]] Status judge_limits(const Peer& peer, const Job& job, std::span<const JobKey> keys,
                                    ResourceRequest& after) const;
  [[nodiscard]] Status judge_conditions(const Job& job, const Requested& after) const;
  [[nodiscard]] Requested requested(const Job& job) const;
  [[nodiscard]] Change as_stored(const Job& job, const Requested& request) const;
  void apply(const Planned& planned);
  void settle_wait(Job& job, const std::string& old_name, ResourceRequest& request);

  HeadContext& head_;
  Parts parts_;
};

}  // namespace score::head
