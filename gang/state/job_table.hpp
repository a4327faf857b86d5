#pragma once
// JobTable holds all jobs that the head knows and their states. It lists those that the timetable
// must hold.

#include "base/result.hpp"
#include "gang/job/job_state.hpp"
#include "gang/state/job.hpp"

#include <map>
#include <set>
#include <utility>

namespace score::gang {

class JobTable {
 public:
  // Adds a job that is Pending and not placed; the id must be new. The reference lives until
  // forget().
  Job& add(JobId id, UserId user, const base::ResourceRequest& request, const Shape& shape);
  // Forgets a job in a final state; else nothing happens.
  void forget(JobId id);

  [[nodiscard]] bool contains(JobId id) const { return jobs_.contains(id); }

  [[nodiscard]] const Job& at(JobId id) const { return jobs_.at(id); }

  Job& at(JobId id) { return jobs_.at(id); }

  // Returns nullptr if there is no such job.
  [[nodiscard]] const Job* find(JobId id) const;
  Job* find(JobId id);

  // Returns the job in whose turns this one runs: for a step its allocation, else the job itself.
  [[nodiscard]] const Job& gang_of(const Job& job) const {
    return job.is_step() && contains(job.request.inside) ? at(job.request.inside) : job;
  }

  // Returns the job for a change. Errors: NotFound; WrongState: it has ended.
  base::Result<Job*> live(JobId id);

  [[nodiscard]] const std::map<JobId, Job>& all() const { return jobs_; }

  std::map<JobId, Job>& all() { return jobs_; }

  // Returns the number of jobs that are not in a final state.
  [[nodiscard]] std::size_t live_count() const { return live_count_; }

  // Returns the place in the queue of the job that is submitted next.
  [[nodiscard]] WaitKey next_wait_key(const base::ResourceRequest& request, JobId id) const;

  // ---- states: the event must be possible
  void change(Job& job, JobEvent event, Step& step);
  // Moves the job from Completing to the final state that was decided.
  void end(Job& job, Step& step);
  // Restores the state of a job that ran or was ending when the head stopped.
  void restore_state(Job& job, JobState state);

  // ---- for the timetable
  [[nodiscard]] const std::set<JobId>& active() const { return active_; }

  [[nodiscard]] const std::set<JobId>& managed() const { return managed_; }

  // Records that the timetable may have to change: jobs, their places, weights or activity, or a
  // setting.
  void mark_changed() { is_changed_ = true; }

  void mark_published() { is_changed_ = false; }

  [[nodiscard]] bool is_changed() const { return is_changed_; }

  [[nodiscard]] base::Result<void> check() const;

 private:
  void set_state(Job& job, JobState state);

  std::map<JobId, Job> jobs_;
  std::uint64_t submissions_ = 0;
  std::size_t live_count_ = 0;
  std::set<JobId> active_;
  std::set<JobId> managed_;
  bool is_changed_ = false;
};

}  // namespace score::gang
