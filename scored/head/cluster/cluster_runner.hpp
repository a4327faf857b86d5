#pragma once
// ClusterRunner carries out the decisions of gang::Cluster, in order. An action may cause an event
// that causes further actions; for example, a specification that cannot be read is a refusal. Those
// actions are queued, never nested. When the queue is empty, each job that changed is handled once.
// All calls come from one thread.

#include "base/async/clock.hpp"
#include "gang/head/cluster.hpp"

#include <deque>
#include <functional>
#include <set>

namespace score::head {

class ClusterRunner {
 public:
  struct Handlers {
    std::function<void(NodeId, HeadToNode&&)> send;
    std::function<void(NodeId)> node_changed;
    std::function<void(JobId)> job_changed;
    std::function<void()> settled;  // no action is left
  };

  // `clock` must outlive this object.
  ClusterRunner(Clock& clock, gang::ClusterConfig config);

  // Must be called once, before the first perform().
  void connect(Handlers handlers) { handlers_ = std::move(handlers); }

  [[nodiscard]] gang::Cluster& cluster() { return cluster_; }

  [[nodiscard]] const gang::Cluster& cluster() const { return cluster_; }

  [[nodiscard]] TimePoint now() const { return clock_.now(); }

  [[nodiscard]] WallTime wall() const { return clock_.wall(); }

  // Converts `at` to nanoseconds of wall time, as the clocks are now.
  [[nodiscard]] std::int64_t wall_of(TimePoint at) const {
    return (wall() + (at - now())).time_since_epoch().count();
  }

  // Errors: NotFound.
  [[nodiscard]] Result<gang::JobView> view(JobId job) const {
    return cluster_.job(job, clock_.now());
  }

  void perform(gang::Actions actions);

  // Causes a call of job_changed for this job, at the latest at the end of the next perform().
  void touch(JobId job) { changed_.insert(job); }

 private:
  void perform_one(gang::Action&& action);

  Clock& clock_;
  gang::Cluster cluster_;
  Handlers handlers_;
  std::deque<gang::Action> actions_;
  std::set<JobId> changed_;
  bool is_performing_ = false;
};

}  // namespace score::head
