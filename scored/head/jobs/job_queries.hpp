#pragma once
// JobQueries is the source of all job information for clients. Active jobs are read from memory,
// ended ones from the store. On a private cluster it leaves out the names and programs of other
// users.

#include "proto/client.pb.h"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/jobs/array_tracker.hpp"
#include "scored/head/jobs/job_table.hpp"

namespace score::head {

class JobQueries {
 public:
  // The parameters must outlive the object.
  JobQueries(HeadContext& head, const ArrayTracker& arrays) : head_(head), arrays_(arrays) {}

  // Returns the user of a job, active or ended. Errors: NotFound.
  [[nodiscard]] Result<UserId> owner(JobId job) const;
  // Returns the job that this job is a step of, active or ended, or the job itself.
  [[nodiscard]] JobId whole(JobId job) const;
  // Returns the status with the events of the job's life. Errors: NotFound.
  [[nodiscard]] Result<wire::JobStatus> status(JobId job) const;
  [[nodiscard]] wire::JobStatus status(const Job& job, const gang::JobView& view) const;
  // Adds what is known of the steps of an allocation.
  void add_steps(const Job& job, wire::JobStatus& status) const;

  // Returns one page of at most limits::kMaxJobsAsked jobs; the last page also has the ended ones.
  // Replies have no tag. Errors: TooLarge (asked for more).
  [[nodiscard]] Result<wire::JobList> list(const Peer& peer, const wire::ListJobs& message) const;
  // Returns what a job used over time. Errors: NotFound, Denied (another user's on a private
  // cluster).
  [[nodiscard]] Result<wire::Profile> profile(const Peer& peer, JobId job) const;
  // Returns one page of ended jobs.
  [[nodiscard]] Result<wire::Accounting> accounting(const Peer& peer,
                                                    const wire::GetAccounting& message) const;

 private:
  void add_array(const Job& array, wire::JobStatus& status) const;
  void explain(wire::JobStatus& status) const;
  [[nodiscard]] Result<wire::JobList> list_tasks(const Peer& peer,
                                                 const wire::ListJobs& message) const;
  void add_ended(const Peer& peer, const wire::ListJobs& message, wire::JobList& list) const;
  bool add(const Peer& peer, wire::JobStatus status, std::size_t& bytes, wire::JobList& list) const;
  [[nodiscard]] bool may_know(const Peer& peer, UserId user) const;
  void hide_from(const Peer& peer, wire::JobStatus& status) const;

  HeadContext& head_;
  const ArrayTracker& arrays_;
};

}  // namespace score::head
