#pragma once
// Admin is the only way to change the running cluster. It checks each command against the
// permission table, stores it, audits it (in the journal, the job's events and the viewers' feed)
// and answers it. It does so alike for the command line, the web page and login nodes. A change
// that cannot be stored does not happen.

#include "scored/head/admin/admin_command.hpp"
#include "scored/head/admin/permissions.hpp"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/jobs/arrays.hpp"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_queries.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/jobs/submissions.hpp"
#include "scored/head/reservations/reservation_manager.hpp"

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace score::head {

// These are the requests that a command can make to the daemon itself.
struct DaemonRequests {
  std::function<Result<HeadConfig>()> read_configuration;  // reads and checks the file
  std::function<void()> exit;                              // called when a shutdown is complete
  Users::Runner directory{};  // asks the user directory; empty: synchronously
};

class Admin {
 public:
  // Receives the line for the user who gave the command, or the error; called once.
  using Reply = std::function<void(const Result<std::string>&)>;

  struct Parts {         // all must outlive the object
    HeadConfig& config;  // the one in the context; a reload changes it
    JobQueries& queries;
    JobLife& life;
    Submissions& submissions;
    Arrays& arrays;
    JobNetworks& networks;
    FairShares& shares;
    ReservationManager& reservations;
    DaemonRequests daemon;
  };

  Admin(HeadContext& head, Parts parts)
      : head_(head), parts_(std::move(parts)), permissions_(head.runner, parts_.queries) {}

  // Executes a command and replies when the change is on disk and done. A shutdown replies when
  // every job has ended; a cancel that waits replies when the end is on disk. Commands for one job
  // are carried out in order. Errors: Denied, NotFound, WrongState, Malformed, TooLarge, Busy, and
  // those of the store; after an error nothing has changed.
  void execute(const Peer& peer, const AdminCommand& command, const Reply& reply);

  // Returns the permissions, which apply to every request, including those that change nothing.
  [[nodiscard]] Permissions& permissions() { return permissions_; }

  // Adds a node of the configuration to the cluster. Errors: the cluster's.
  [[nodiscard]] Status add_node(const std::string& name);

  // ---- called in turn
  // Ends a shutdown when no job is left, or at its deadline.
  void check_shutdown();

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return shutdown_deadline_; }

 private:
  using Effect = std::function<void()>;
  using Changes = std::vector<Change>;

  struct Asked {
    Peer peer;
    AdminCommand command;
    Reply reply;
  };

  // Each check() returns what must be on disk before the command is carried out, and changes
  // nothing.
  Result<Changes> check(const Peer& peer, const ChangeSetting& command);
  Result<Changes> check(const Peer& peer, const DrainNodes& command);
  Result<Changes> check(const Peer& peer, const ReserveNodes& command);
  Result<Changes> check(const Peer& peer, const RemoveReservation& command);
  Result<Changes> check(const Peer& peer, const ReloadConfiguration& command);
  Result<Changes> check(const Peer& peer, const ShutDown& command);
  Result<Changes> check(const Peer& peer, const SignalJob& command);
  Result<Changes> check(const Peer& peer, const CancelJob& command);
  Result<Changes> check(const Peer& peer, const ControlJob& command);
  Result<Changes> check_file(const HeadConfig& wanted);

  // Each prepare() changes the cluster; the returned effect sends what follows from the change. It
  // fails if the job has changed since check().
  Result<Effect> prepare(const Peer& peer, const ChangeSetting& command);
  Result<Effect> prepare(const Peer& peer, const DrainNodes& command);
  Result<Effect> prepare(const Peer& peer, const ReserveNodes& command);
  Result<Effect> prepare(const Peer& peer, const RemoveReservation& command);
  Result<Effect> prepare(const Peer& peer, const ReloadConfiguration& command);
  Result<Effect> prepare(const Peer& peer, const ShutDown& command);
  Result<Effect> prepare(const Peer& peer, const SignalJob& command);
  Result<Effect> prepare(const Peer& peer, const CancelJob& command);
  Result<Effect> prepare(const Peer& peer, const ControlJob& command);

  [[nodiscard]] Result<Effect> effect_of(Result<gang::Actions> actions);
  [[nodiscard]] Status permit_control(const Peer& peer, const Job& job, const ControlJob& command);
  [[nodiscard]] Result<gang::Actions> control(Job& job, const ControlJob& command);
  [[nodiscard]] Result<Job*> active_job(JobId job);
  [[nodiscard]] Result<std::vector<NodeId>> nodes_of(const DrainNodes& command) const;
  void begin(JobId line);
  void finish(JobId line, const Status& stored);
  void carry_out(const Asked& asked);
  // Restores the stored value after a command failed or could not be stored.
  void store_as_it_is(const AdminCommand& command, const Status& stored);
  void take_file(HeadConfig wanted);
  // Applies a change of the configuration file that has been checked and stored.
  void change(const ChangeSetting& command);
  void audit(const Peer& peer, const AdminCommand& command);
  void answer(const AdminCommand& command, const Reply& reply);
  void answer_cancel(const CancelJob& command, const Reply& reply);

  [[nodiscard]] TimePoint now() const { return head_.runner.now(); }

  HeadContext& head_;
  Parts parts_;
  std::map<JobId, std::deque<Asked>> asked_;  // 0: not about a job. The first is being stored
  std::optional<HeadConfig> wanted_;          // from the reload that is being stored
  Permissions permissions_;
  Reply shutdown_reply_;  // empty: no shutdown is in progress
  std::optional<TimePoint> shutdown_deadline_;
};

}  // namespace score::head
