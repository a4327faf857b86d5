#pragma once
// JobTable holds the jobs that the head keeps in memory, counts them in all and per user, and
// numbers new ones. It is pure.

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
  // Returns nullptr if the job is unknown, or has ended and is no longer needed. The pointer is
  // valid until erase().
  [[nodiscard]] Job* find(JobId job);
  [[nodiscard]] const Job* find(JobId job) const;

  // Returns active jobs, and ended ones whose output may still be fetched.
  [[nodiscard]] const std::map<JobId, Job>& all() const { return jobs_; }

  // Returns the number of active jobs of all users.
  [[nodiscard]] std::size_t active() const { return active_; }

  [[nodiscard]] std::vector<JobId> active_ids() const;

  // ---- jobs that are accepted and have not ended
  struct Usage {
    std::size_t jobs = 0;  // without steps
    std::size_t steps = 0;
    Bytes specs{0};  // sum of JobInfo::spec_bytes

    friend bool operator==(const Usage&, const Usage&) = default;
  };

  [[nodiscard]] Usage usage_of(UserId user) const;
  // Fails with Denied if the user may have no more steps; [limits] max_jobs does not count them.
  [[nodiscard]] Status admits_step(UserId user) const;

  [[nodiscard]] const Usage& usage() const { return usage_; }

  // These count jobs without steps, of an account or of a user in it.
  [[nodiscard]] std::size_t jobs_of(const std::string& account) const;
  [[nodiscard]] std::size_t jobs_of(const std::string& account, UserId user) const;
  // Counts a user's jobs without steps in a partition.
  [[nodiscard]] std::size_t jobs_in(const std::string& partition, UserId user) const;

  // ---- numbers
  // Returns the largest number ever given to a job.
  [[nodiscard]] JobId last_number() const { return last_number_; }

  void set_last_number(JobId last) { last_number_ = last; }

  // Returns a number for a job that is about to be stored.
  [[nodiscard]] JobId take_number() { return last_number_ = JobId(last_number_.value() + 1); }

  void count_in(const JobInfo& info);
  void count_out(const JobInfo& info);

  // ---- the life of a job; its user must have been counted in before
  Job& add(JobInfo info);
  // Counts the job out; its last status is shown for a while.
  void end(Job& job, wire::JobStatus status, TimePoint now);

  void erase(JobId job) { jobs_.erase(job); }

  // Returns an equal text whose memory jobs may share.
  [[nodiscard]] SharedText share(const SharedText& text) { return texts_.share(text); }

  // Records a node's sample of what the attempt has filled there. Only a job's last attempt counts.
  void note_filled(AttemptId attempt, NodeId node, Duration filled);
  // Adds a node's report to the profile of the job, and of the job that it is a step of.
  void note_use(AttemptId attempt, NodeId node, WallTime at, const monitor::NodeUse& use);

  // Returns the jobs that ended within the last 10 s, at most 100.
  [[nodiscard]] std::vector<const wire::JobStatus*> recently_ended(TimePoint now) const;
  // Returns the nodes, by node index, of an attempt that is its job's last one; otherwise none. The
  // span is valid until the job changes.
  [[nodiscard]] std::span<const NodeId> nodes_of(AttemptId attempt) const;

 private:
  std::map<JobId, Job> jobs_;
  JobId last_number_;
  TextPool texts_;
  std::size_t active_ = 0;
  Usage usage_;
  std::map<UserId, Usage> usage_of_;
  using Counts = std::map<std::pair<std::string, UserId>, std::size_t>;

  Counts jobs_of_;  // by account and user
  Counts jobs_in_;  // by partition and user
  std::deque<std::pair<TimePoint, wire::JobStatus>> recently_ended_;
};

}  // namespace score::head
