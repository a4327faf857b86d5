#pragma once
// All jobs that the head knows, their states, and which of them the timetable must hold.

#include "base/result.hpp"
#include "gang/job/job_state.hpp"
#include "gang/state/job.hpp"

#include <map>
#include <set>
#include <utility>

namespace score::gang {

class JobTable {
 public:
  // Pending, not placed. The id is new. A reference lives until forget().
  Job& add(JobId id, UserId user, const base::ResourceRequest& request, const Shape& shape);
  // Forgets a job in a final state; else nothing happens.
  void forget(JobId id);

  [[nodiscard]] bool contains(JobId id) const { return jobs_.contains(id); }

  [[nodiscard]] const Job& at(JobId id) const { return jobs_.at(id); }

  Job& at(JobId id) { return jobs_.at(id); }

  // nullptr: there is none.
  [[nodiscard]] const Job* find(JobId id) const;
  Job* find(JobId id);

  // The job in whose turns it runs: the one that a step is inside, else itself.
  [[nodiscard]] const Job& gang_of(const Job& job) const {
    return job.is_step() && contains(job.request.inside) ? at(job.request.inside) : job;
  }

  // For changes. Errors: NotFound; WrongState: it has ended.
  base::Result<Job*> live(JobId id);

  [[nodiscard]] const std::map<JobId, Job>& all() const { return jobs_; }

  std::map<JobId, Job>& all() { return jobs_; }

  // Jobs that are not in a final state.
  [[nodiscard]] std::size_t live_count() const { return live_count_; }

  // The place in line of a job that is submitted next.
  [[nodiscard]] WaitKey next_wait_key(const base::ResourceRequest& request, JobId id) const;

  // ---- states: the event must be possible
  void change(Job& job, JobEvent event, Step& step);
  // From Completing to the final state that was decided.
  void end(Job& job, Step& step);
  // A restarted head: the job ran, or was ending.
  void restore_state(Job& job, JobState state);

  // ---- for the timetable
  [[nodiscard]] const std::set<JobId>& active() const { return active_; }

  [[nodiscard]] const std::set<JobId>& managed() const { return managed_; }

  // The timetable may have to change: jobs, their places, weights or activity, or a setting.
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
