#pragma once
// JobLife manages a job from its acceptance to its end: changes are saved, shown to watchers and
// logged. It also ends jobs by request, limit or deadline, and owns the jobs' deadlines that are
// not gang::Cluster's.

#include "base/model/deadlines.hpp"
#include "monitor/sampler/samples.hpp"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/jobs/fair_shares.hpp"
#include "scored/head/jobs/job_queries.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/notices/notices.hpp"
#include "scored/head/streams/job_networks.hpp"
#include "scored/head/streams/job_streams.hpp"
#include "scored/head/streams/job_volumes.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

// The deadlines of jobs that the head, not gang::Cluster, is responsible for.
enum class DeadlineKind : std::uint8_t {
  Kill,       // the grace after SIGTERM is over
  Immediate,  // the job had to be placed by now
  FrontEnd,   // no front end came back to a job that needs one
  Drop,       // the output of an ended job was not fetched
  LimitPart,  // a part of a time limit may have been used
};

using Deadlines = base::Deadlines<DeadlineKind>;

class JobLife final : public JobStreams::Listener {
 public:
  struct Parts {  // all must outlive the object
    JobQueries& queries;
    JobStreams& streams;
    JobNetworks& networks;
    JobVolumes& volumes;
    FairShares& shares;
    Notices& notices;
  };

  // Listener is the part of the head that knows arrays and jobs that wait for others.
  class Listener {
   public:
    virtual bool defers(Job& job) = 0;       // new job; true: the cluster must hold it back
    virtual void accepted(Job& job) = 0;     // new job that the cluster knows
    virtual void began(const Job& job) = 0;  // the job has its place, or its tasks run
    virtual void ended(const Job& job) = 0;  // its final state is known

   protected:
    ~Listener() = default;
  };

  // `listener` must outlive the object; it is called from the first job on.
  JobLife(HeadContext& head, Parts parts, Listener& listener);

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
  // Ends the attempt as terminate() does, after which the job waits in the queue again. The
  // cluster must have accepted the requeue; these are its actions.
  void requeue(Job& job, const gang::Actions& accepted, Duration grace);
  // The job's tasks had been sent SIGTERM for a requeue before the restart.
  void resume_requeue(Job& job);

  [[nodiscard]] static std::string why_requeued(const std::string& by) {
    return "requested by " + by;
  }

  // Ends a job that has not started and cannot start any more, for this reason.
  void end_waiting(Job& job, std::string why);
  // Ends a job that cannot continue, for this reason.
  void abort(AttemptId attempt, std::string why) override;
  // Calls `then` when the job's end is on disk; immediately if it already is.
  void when_recorded(JobId job, std::function<void()> then);

  // ---- front end
  void front_end_attached(JobId job);
  void front_end_lost(JobId job) override;
  // Handles a front end that left by request: the job continues without one, even after a restart.
  // Errors: the store's; the front end then counts as lost.
  void front_end_left(JobId job, CommitLog::Confirmed done);
  // All output of an ended job was fetched.
  void output_delivered(JobId job) override;

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
  void end_attempt(JobId id);
  void note_state(Job& job, const gang::JobView& view);
  void note_start(Job& job, const gang::JobView& view);
  void wait_for_place(const Job& job);
  void note_requeue(Job& job, const gang::JobView& view);
  void inform_of_relaunch(Job& job, const gang::JobView& view);
  void note_wait(Job& job, const gang::JobView& view);
  void note_activity(Job& job, const gang::JobView& view);
  void note_limit_parts(Job& job, const gang::JobView& view);
  void save_progress(Job& job);
  void send_notices(Job& job, const gang::JobView& view);
  void inform_watchers(Job& job, const gang::JobView& view);
  void end(Job& job, const gang::JobView& view);
  void end_unbegun(Job& job, const Error& error);
  void recorded(JobId job);
  void drop_if_done(JobId job);
  void meet(const Deadlines::Due& due);
  void set_deadline(JobId job, DeadlineKind kind, TimePoint at);
  void add_event(const Job& job, std::string_view what, std::string_view why);

  [[nodiscard]] TimePoint now() const { return head_.runner.now(); }

  HeadContext& head_;
  Parts parts_;
  Listener& listener_;
  Deadlines deadlines_;
  std::map<JobId, std::vector<std::function<void()>>> waiting_;  // for the end on disk
  monitor::WaitHistogram waits_;
};

}  // namespace score::head
