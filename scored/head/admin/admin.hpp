#pragma once
// The one way in which the running cluster is changed. Each command is checked against the
// permission table, audited (journal, the job's events, the viewers' feed) and answered here, for
// the command line, the web page and login nodes alike.

#include "base/os/log.hpp"
#include "scored/head/admin/admin_command.hpp"
#include "scored/head/cluster/cluster_runner.hpp"
#include "scored/head/cluster/event_feed.hpp"
#include "scored/head/cluster/node_links.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_queries.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/jobs/submissions.hpp"
#include "scored/head/store/commit_log.hpp"

#include <functional>
#include <optional>
#include <string>

namespace score::head {

// What a command can ask of the daemon itself.
struct DaemonRequests {
  std::function<Status()> reload;
  std::function<void()> exit;  // after a shutdown: every job has ended
};

class Admin {
 public:
  // The line for the user who gave the command, or the refusal. Called once.
  using Reply = std::function<void(const Result<std::string>&)>;

  struct Parts {  // all outlive it
    ClusterRunner& runner;
    HeadConfig& config;
    JobTable& jobs;
    JobQueries& queries;
    JobLife& life;
    Submissions& submissions;
    JobNetworks& networks;
    NodeLinks& links;
    CommitLog& commits;
    Users& users;
    EventFeed& feed;
    Alarm& alarm;
    DaemonRequests daemon;
  };

  explicit Admin(Parts parts) : parts_(std::move(parts)) {}

  // Answers at once, except a shutdown (when every job has ended) and a cancel that waits (when the
  // end is on disk). Errors: Denied, NotFound, WrongState, Malformed, TooLarge.
  void execute(const Peer& peer, const AdminCommand& command, const Reply& reply);
  // Applies a checked configuration. Errors: what a running head cannot change.
  [[nodiscard]] Status reconfigure(HeadConfig wanted);
  // Makes a node of the configuration known. Errors: the cluster's.
  [[nodiscard]] Status add_node(const std::string& name);

  // ---- called in turn
  // Ends a shutdown when no job is left, or at its deadline.
  void check_shutdown();

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return shutdown_deadline_; }

 private:
  using Effect = std::function<void()>;

  // Checks a command and changes the cluster; the effect stores and sends what follows.
  Result<Effect> prepare(const Peer& peer, const SetQuantum& command);
  Result<Effect> prepare(const Peer& peer, const SetSlots& command);
  Result<Effect> prepare(const Peer& peer, const SetIdleDetection& command);
  Result<Effect> prepare(const Peer& peer, const SetFill& command);
  Result<Effect> prepare(const Peer& peer, const DrainNodes& command);
  Result<Effect> prepare(const Peer& peer, const ReloadConfiguration& command);
  Result<Effect> prepare(const Peer& peer, const ShutDown& command);
  Result<Effect> prepare(const Peer& peer, const SignalJob& command);
  Result<Effect> prepare(const Peer& peer, const CancelJob& command);
  Result<Effect> prepare(const Peer& peer, const ControlJob& command);

  [[nodiscard]] Status permit(const Peer& peer, const AdminCommand& command);
  [[nodiscard]] Error refuse(const Peer& peer, const AdminCommand& command);
  [[nodiscard]] Status permit_control(const Peer& peer, const Job& job, const ControlJob& command);
  [[nodiscard]] Result<gang::Actions> control(const ControlJob& command);
  void note_keeper(const Peer& peer, Job& job, ControlJob::What what);
  [[nodiscard]] Result<Job*> active_job(JobId job);
  void audit(const Peer& peer, const AdminCommand& command);
  void answer(const AdminCommand& command, const Reply& reply);
  Status change(const AdminCommand& command);

  [[nodiscard]] TimePoint now() const { return parts_.runner.now(); }

  Parts parts_;
  LogLimiter refusals_;
  Reply shutdown_reply_;  // empty: none is under way
  std::optional<TimePoint> shutdown_deadline_;
};

}  // namespace score::head
