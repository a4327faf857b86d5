#pragma once
// WaitingJobs manages jobs that wait for other jobs or for a time: it reports events to the
// DependencyTracker and carries out its decisions. The cluster holds such a job back meanwhile.
// Only the conditions are stored; after a restart of the head they are compared with the states of
// the jobs.

#include "scored/head/cluster/head_context.hpp"
#include "scored/head/jobs/arrays.hpp"
#include "scored/head/jobs/dependency_tracker.hpp"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_table.hpp"

#include <optional>
#include <string>
#include <vector>

namespace score::head {

class WaitingJobs {
 public:
  // The parameters must outlive the object.
  WaitingJobs(HeadContext& head, JobLife& life, Arrays& arrays)
      : head_(head), life_(life), arrays_(arrays) {}

  // Checks whether a new job may wait for this. Errors: NotFound (no such job ever existed),
  // Malformed (times that contradict each other, a deadline in the past).
  [[nodiscard]] Status check(const Conditions& conditions, Duration wall_limit) const;
  // Returns why a job submitted now would have to wait; empty if it would not.
  [[nodiscard]] std::vector<std::string> foresee(const Conditions& conditions, UserId user,
                                                 const std::string& name) const;

  // Adds a job; every job must be added, in ascending order. Returns true if it is deferred. Steps
  // wait only for cores of their job, and no job waits for their names.
  bool add(Job& job);
  // Takes over the job's changed conditions, name and limit. Returns true if it waits now; its
  // caller must then let the cluster hold it back, else release it.
  bool change(Job& job, const std::string& old_name);
  void began(const Job& job);
  void ended(const Job& job);

  // ---- called in turn
  void tick();
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  [[nodiscard]] static DependencyTracker::NewJob described(const Job& job);
  [[nodiscard]] Standing standing_of(JobId job) const;
  void settle();
  void carry_out(const WaitDecision& decision);
  void go(Job& job);

  HeadContext& head_;
  JobLife& life_;
  Arrays& arrays_;
  DependencyTracker tracker_;
  bool is_settling_ = false;
};

}  // namespace score::head
