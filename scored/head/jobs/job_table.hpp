#pragma once
// The jobs that the head keeps in memory, how many there are, and how many each user has. Pure.

#include "scored/head/jobs/job.hpp"

#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace score::head {

class JobTable {
 public:
  // nullptr: it is unknown, or ended and no longer needed. Valid until erase().
  [[nodiscard]] Job* find(JobId job);
  [[nodiscard]] const Job* find(JobId job) const;

  // Active jobs, and ended ones whose output is still wanted.
  [[nodiscard]] const std::map<JobId, Job>& all() const { return jobs_; }

  // Active jobs, of all users.
  [[nodiscard]] std::size_t active() const { return active_; }

  [[nodiscard]] std::vector<JobId> active_ids() const;

  // ---- jobs that are accepted and not ended
  struct Usage {
    std::size_t jobs = 0;  // without steps
    Bytes specs{0};        // JobInfo::spec_bytes

    friend bool operator==(const Usage&, const Usage&) = default;
  };

  [[nodiscard]] Usage usage_of(UserId user) const;

  [[nodiscard]] const Usage& usage() const { return usage_; }

  // Without steps; of an account, or of a user in it.
  [[nodiscard]] std::size_t jobs_of(const std::string& account) const;
  [[nodiscard]] std::size_t jobs_of(const std::string& account, UserId user) const;

  void count_in(const JobInfo& info);
  void count_out(const JobInfo& info);

  // ---- the life of a job; its user has been counted in
  Job& add(JobInfo info);
  // Counted out; its last status is shown for a while.
  void end(Job& job, wire::JobStatus status, TimePoint now);

  void erase(JobId job) { jobs_.erase(job); }

  // The text in memory that other jobs may have, too.
  [[nodiscard]] SharedText share(const SharedText& text) { return texts_.share(text); }

  // A node's sample: what the attempt has filled there. Only of a job's last attempt.
  void note_filled(AttemptId attempt, NodeId node, Duration filled);

  // Those that ended within the last 10 s, at most 100.
  [[nodiscard]] std::vector<const wire::JobStatus*> recently_ended(TimePoint now) const;
  // [node of the job] of an attempt that is its job's last one, else none. Valid until the job
  // changes.
  [[nodiscard]] std::span<const NodeId> nodes_of(AttemptId attempt) const;

 private:
  std::map<JobId, Job> jobs_;
  TextPool texts_;
  std::size_t active_ = 0;
  Usage usage_;
  std::map<UserId, Usage> usage_of_;
  std::map<std::pair<std::string, UserId>, std::size_t> jobs_of_;  // account, user
  std::deque<std::pair<TimePoint, wire::JobStatus>> recently_ended_;
};

}  // namespace score::head
