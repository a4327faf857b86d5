#pragma once
// The commands about one job: signal, cancel and control.

#include "scored/head/admin/command_steps.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/jobs/arrays.hpp"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/jobs/submissions.hpp"

#include <functional>
#include <string>

namespace score::head {

class JobCommands {
 public:
  struct Parts {  // all must outlive the object
    const HeadConfig& config;
    JobLife& life;
    Submissions& submissions;
    Arrays& arrays;
    Permissions& permissions;
  };

  JobCommands(HeadContext& head, const Parts& parts) : head_(head), parts_(parts) {}

  // See ClusterCommands.
  Result<Changes> check(const Peer& peer, const SignalJob& command);
  Result<Changes> check(const Peer& peer, const CancelJob& command);
  Result<Changes> check(const Peer& peer, const ControlJob& command);
  Result<Effect> prepare(const Peer& peer, const SignalJob& command);
  Result<Effect> prepare(const Peer& peer, const CancelJob& command);
  Result<Effect> prepare(const Peer& peer, const ControlJob& command);

  // Restores the stored values of the job after the command failed or could not be `stored`.
  void restore(const ControlJob& command, const Status& stored);
  // Calls `done` when the last of the cancelled jobs is recorded.
  void when_recorded(const CancelJob& command, const std::function<void()>& done);

 private:
  [[nodiscard]] Status permit_control(const Peer& peer, const Job& job, const ControlJob& command);
  // `by` is the name of the user.
  [[nodiscard]] Result<gang::Actions> control(const std::string& by, Job& job,
                                              const ControlJob& command);
  [[nodiscard]] static Result<Changes> check_requeue(const Peer& peer, const Job& job,
                                                     const gang::JobView& view);
  void restore_requeue(JobId id);
  [[nodiscard]] Result<Job*> active_job(JobId job);

  [[nodiscard]] TimePoint now() const { return head_.runner.now(); }

  HeadContext& head_;
  Parts parts_;
};

}  // namespace score::head
