#pragma once
// What clients ask about jobs: active ones from memory, ended ones from the store. On a private
// cluster others' names and programs are left out.

#include "proto/client.pb.h"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/store/store.hpp"
#include "scored/head/waits/array_book.hpp"

namespace score::head {

class JobQueries {
 public:
  struct Parts {  // all outlive it
    const ClusterRunner& runner;
    const HeadConfig& config;
    const JobTable& jobs;
    StoreReader& reader;
    Users& users;
    const ArrayBook& arrays;
  };

  explicit JobQueries(Parts parts) : parts_(parts) {}

  // The user of a job, active or ended. Errors: NotFound.
  [[nodiscard]] Result<UserId> owner(JobId job) const;
  // Of the job, or of the one that it is a step of, a part is placed on the node. True also for a
  // step that has ended, while its job has not.
  [[nodiscard]] bool runs_on(JobId job, NodeId node) const;
  // The user has such a job.
  [[nodiscard]] bool has_job_on(UserId user, NodeId node) const;
  // With the events of its life. Errors: NotFound.
  [[nodiscard]] Result<wire::JobStatus> status(JobId job) const;
  [[nodiscard]] wire::JobStatus status(const Job& job, const gang::JobView& view) const;
  // What is known of the steps of an allocation.
  void add_steps(const Job& job, wire::JobStatus& status) const;

  // Replies have no tag. A page: at most limits::kMaxJobsAsked jobs; the last page has the ended
  // ones, too. Errors: TooLarge (asked for more).
  [[nodiscard]] Result<wire::JobList> list(const Peer& peer, const wire::ListJobs& message) const;
  // One page of ended jobs.
  [[nodiscard]] Result<wire::Accounting> accounting(const Peer& peer,
                                                    const wire::GetAccounting& message) const;

 private:
  void add_array(const Job& array, wire::JobStatus& status) const;
  void add_expected_start(wire::JobStatus& status) const;
  [[nodiscard]] Result<wire::JobList> list_tasks(const Peer& peer,
                                                 const wire::ListJobs& message) const;
  void add_ended(const Peer& peer, const wire::ListJobs& message, wire::JobList& list) const;
  bool add(const Peer& peer, wire::JobStatus status, std::size_t& bytes, wire::JobList& list) const;
  [[nodiscard]] bool may_know(const Peer& peer, UserId user) const;
  void hide_from(const Peer& peer, wire::JobStatus& status) const;

  Parts parts_;
};

}  // namespace score::head
