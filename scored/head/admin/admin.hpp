#pragma once
// Admin is the only way to change the running cluster. It checks each command against the
// permission table, stores it, audits it (in the journal, the job's events and the viewers' feed)
// and answers it. It does so alike for the command line, the web page and login nodes. A change
// that cannot be stored does not happen.

#include "scored/head/admin/admin_command.hpp"
#include "scored/head/admin/change_commands.hpp"
#include "scored/head/admin/cluster_commands.hpp"
#include "scored/head/admin/job_commands.hpp"
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
#include <type_traits>

namespace score::head {

// These are the requests that a command can make to the daemon itself.
struct DaemonRequests {
  std::function<Result<HeadConfig>()> read_configuration;  // reads and checks the file
  std::function<void()> exit;                              // called when a shutdown is complete
  Users::Runner directory{};  // asks the user directory; empty: synchronously
};

class Admin {
 public:
  // Receives the line for the user who gave the command with the log's receipt, or the error;
  // called once.
  using Reply = std::function<void(const Result<Logged<std::string>>&)>;

  struct Parts {         // all must outlive the object
    HeadConfig& config;  // the one in the context; a reload changes it
    JobQueries& queries;
    const AttemptSecrets& secrets;
    JobLife& life;
    Submissions& submissions;
    Arrays& arrays;
    WaitingJobs& waiting;
    JobNetworks& networks;
    FairShares& shares;
    ReservationManager& reservations;
    DaemonRequests daemon;
  };

  Admin(HeadContext& head, Parts parts);

  // Executes a command and replies when the change is on disk and done. A shutdown replies when
  // every job has ended; a cancel that waits replies when the end is on disk. Commands for one job
  // are carried out in order. Errors: Denied, NotFound, WrongState, Malformed, TooLarge, Busy, and
  // those of the store; after an error nothing has changed.
  void execute(const Peer& peer, const AdminCommand& command, const Reply& reply);

  // Returns the permissions, which apply to every request, including those that change nothing.
  [[nodiscard]] Permissions& permissions() { return permissions_; }

  // Gives the cluster the partitions, switches and licenses of the configuration.
  void apply_rules() { cluster_commands_.apply_rules(); }

  // Adds a node of the configuration to the cluster. Errors: the cluster's.
  [[nodiscard]] Status add_node(const std::string& name) {
    return cluster_commands_.add_node(name);
  }

  // ---- called in turn
  // Ends a shutdown when no job is left, or at its deadline.
  void check_shutdown();

  [[nodiscard]] std::optional<TimePoint> next_deadline() const { return shutdown_deadline_; }

 private:
  struct Asked {
    Peer peer;
    AdminCommand command;
    Reply reply;
  };

  // Returns the object whose check() and prepare() take this command; see ClusterCommands.
  template <class Command>
  auto& handler_of(const Command& command) {
    if constexpr (std::is_same_v<Command, ChangeJob>) {
      return change_commands_;
    } else if constexpr (requires { command.job; }) {
      return job_commands_;
    } else if constexpr (std::is_same_v<Command, ShutDown>) {
      return *this;
    } else {
      return cluster_commands_;
    }
  }

  static Result<Changes> check(const Peer& peer, const ShutDown& command);
  Result<Effect> prepare(const Peer& peer, const ShutDown& command);

  void begin(JobId line);
  void finish(JobId line, const Result<LogReceipt>& logged);
  void carry_out(const Asked& asked, const LogReceipt& receipt);
  // Restores the stored value after a command failed or could not be stored.
  void store_as_it_is(const AdminCommand& command, const Status& stored);
  void answer(const Asked& asked, const LogReceipt& receipt);

  [[nodiscard]] TimePoint now() const { return head_.runner.now(); }

  HeadContext& head_;
  Parts parts_;
  std::map<JobId, std::deque<Asked>> asked_;  // 0: not about a job. The first is being stored
  Permissions permissions_;
  ClusterCommands cluster_commands_;
  JobCommands job_commands_;
  ChangeCommands change_commands_;
  std::function<void()> shutdown_reply_;  // empty: no shutdown is in progress
  std::optional<TimePoint> shutdown_deadline_;
};

}  // namespace score::head
