#pragma once
// JobLife manages a job from its acceptance to its end: changes are saved, shown to watchers and
// logged. It also ends jobs by request, limit or deadline, and owns the jobs' deadlines that are
// not gang::Cluster's.

#include "base/async/alarm.hpp"
#include "monitor/sampler/samples.hpp"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/cluster/event_feed.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/jobs/deadlines.hpp"
#include "scored/head/jobs/job_networks.hpp"
#include "scored/head/jobs/job_queries.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/store/commit_log.hpp"
#include "scored/head/streams/job_streams.hpp"
#include "scored/head/volumes/job_volumes.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

class JobLife {
 public:
  struct Parts {  // all must outlive the object
    ClusterRunner& runner;
    const HeadConfig& config;
    JobTable& jobs;
    JobQueries& queries;
    JobStreams& streams;
    JobNetworks& networks;
    JobVolumes& volumes;
    CommitLog& commits;
    Users& users;
    EventFeed& feed;
    Alarm& alarm;
  };

  // These hooks connect other parts of the head to the life of jobs.
  struct Hooks {
    std::function<bool(Job&)> defers;  // new job; true: the cluster must hold it back
    std::function<std::optional<UseSum>(Job&)> charge;  // charges its use; stored with its progress
    std::function<void(Job&)> accepted;                 // new job that the cluster knows
    std::function<void(const Job&)> began;              // the job has its place, or its tasks run
    std::function<void(const Job&)> ended;              // its final state is known
  };

  explicit JobLife(Parts parts) : parts_(parts) {}

  // Must be called once, before the first job.
  void connect(Hooks hooks) { hooks_ = std::move(hooks); }

  // ---- beginning
  // The job is stored; from here on it is a job of the cluster.
  void begin(AddJob&& add, const ResourceRequest& request);
  // Returns the job to the cluster after a restart of the head. `waits` is true if it has not been
  // placed.
  void resume(Job& job, bool waits);
  // The job's tasks had been sent SIGTERM before the restart; the remaining ones get a new grace.
  void resume_cancel(Job& job, const std::string& by);

  // ---- end
  // Sends SIGTERM, waits for the grace, then ends the job. Ends it immediately if there is no
  // grace, or if no task can receive the signal. The first cause counts.
  void terminate(Job& job, gang::EndCause cause, std::string why, Duration grace);
  void kill(JobId job, gang::EndCause cause);
  // Ends a job that has not started and cannot start any more, for this reason.
  void end_waiting(Job& job, std::string why);
  // Ends a job that cannot continue, for this reason.
  void abort(AttemptId attempt, std::string why);
  // Calls `then` when the job's end is on disk; immediately if it already is.
  void when_recorded(JobId job, std::function<void()> then);

  // ---- front end
  void front_end_attached(JobId job);
  void front_end_lost(JobId job);
  // Handles a front end that left by request: the job continues without one, even after a restart.
  // Errors: the store's; the front end then counts as lost.
  void front_end_left(JobId job, CommitLog::Callback done);
  // All output of an ended job was fetched.
  void output_delivered(JobId job);

  // ---- requests, before they are carried out
  // Returns the change that stores Job::asked_state and Job::asked_detached.
  [[nodiscard]] Change asked(Job& job);
  // The request was stored and is done now, or it could not be stored.
  void answered(Job& job, const Status& stored);

  // ---- called in turn
  void changed(JobId job);
  void tick(TimePoint now);

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return deadlines_.next(); }

  // Marks all running jobs, so that their use is saved with the next actions.
  void save_running();

  // Returns the times from submission to start, of jobs that started.
  [[nodiscard]] const monitor::WaitHistogram& waits() const { return waits_; }

 private:
  void let_end(JobId job);
  void end_step(JobId step, gang::EndCause cause, const std::string& why);
  void note_state(Job& job, const gang::JobView& view);
  void note_start(Job& job, const gang::JobView& view);
  void wait_for_place(const Job& job);
  void note_requeue(Job& job, const gang::JobView& view);
  void note_wait(Job& job, const gang::JobView& view);
  void note_activity(Job& job, const gang::JobView& view);
  void save_progress(Job& job);
  void inform_watchers(Job& job, const gang::JobView& view);
  void end(Job& job, const gang::JobView& view);
  void end_unbegun(Job& job, const Error& error);
  void recorded(JobId job);
  void drop_if_done(JobId job);
  void meet(const Deadlines::Due& due);
  void set_deadline(JobId job, DeadlineKind kind, TimePoint at);
  void add_event(const Job& job, std::string_view what, std::string_view why);

  [[nodiscard]] TimePoint now() const { return parts_.runner.now(); }

  Parts parts_;
  Hooks hooks_;
  Deadlines deadlines_;
  std::map<JobId, std::vector<std::function<void()>>> waiting_;  // for the end on disk
  monitor::WaitHistogram waits_;
};

}  // namespace score::head
