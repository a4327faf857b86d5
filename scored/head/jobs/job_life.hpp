#pragma once
// A job from its acceptance to its end: what changes is saved, shown to watchers and logged; and
// the ways in which the head itself ends it, by request, limit or deadline. Owns the deadlines of
// jobs that are not gang::Cluster's.

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
  struct Parts {  // all outlive it
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

  // What else wants to know of jobs.
  struct Hooks {
    std::function<bool(Job&)> defers;  // a new job: whether the cluster holds it back for now
    std::function<std::optional<UseSum>(Job&)> charge;  // with what it used, as it is stored
    std::function<void(Job&)> accepted;                 // a new job: the cluster knows it
    std::function<void(const Job&)> began;              // it has its place, or its tasks run
    std::function<void(const Job&)> ended;              // its final state is known
  };

  explicit JobLife(Parts parts) : parts_(parts) {}

  // Once, before the first job.
  void connect(Hooks hooks) { hooks_ = std::move(hooks); }

  // ---- its beginning
  // It is stored: from here on it is a job of the cluster.
  void begin(AddJob&& add, const ResourceRequest& request);
  // It is the cluster's again after a restart of the head; `waits`: it has not been placed.
  void resume(Job& job, bool waits);
  // Its tasks had been sent SIGTERM before the restart; what is left of them has one more grace.
  void resume_cancel(Job& job, const std::string& by);

  // ---- its end
  // SIGTERM, the grace, then the end; the end at once if there is no grace, or nothing that could
  // receive the signal. The first cause counts.
  void terminate(Job& job, gang::EndCause cause, std::string why, Duration grace);
  void kill(JobId job, gang::EndCause cause);
  // It has not started and cannot any more, for this reason.
  void end_waiting(Job& job, std::string why);
  // It cannot go on, for this reason.
  void abort(AttemptId attempt, std::string why);
  // Calls `then` when its end is on disk; at once if it is.
  void when_recorded(JobId job, std::function<void()> then);

  // ---- its front end
  void front_end_attached(JobId job);
  void front_end_lost(JobId job);
  // It left by request: the job goes on without one, also after a restart. Errors: the store's; it
  // counts as lost then.
  void front_end_left(JobId job, CommitLog::Callback done);
  // All of an ended job's output was taken.
  void output_delivered(JobId job);

  // ---- what is asked of it, before it is done
  // The change that stores Job::asked_state and Job::asked_detached.
  [[nodiscard]] Change asked(Job& job);
  // That was stored and is done now, or it could not be stored.
  void answered(Job& job, const Status& stored);

  // ---- called in turn
  void changed(JobId job);
  void tick(TimePoint now);

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return deadlines_.next(); }

  // What running jobs have used is saved with the next actions.
  void save_running();

  // From submission to start, of jobs that started.
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
