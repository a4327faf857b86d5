#pragma once
// Head makes the parts of the head, connects them, recovers their state from the store, and runs
// their deadlines. It knows connections, but no sockets. All runs in one thread, except the commit
// log's.
//
// The guarantees follow from this order:
//   a submission is answered, and given to the cluster, when it is on disk;
//   tasks are started when their placement is on disk, so a restarted head runs nothing twice;
//   nodes may forget an attempt when its end is on disk.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "scored/head/admin/admin.hpp"
#include "scored/head/checkpoint/checkpoint_manager.hpp"
#include "scored/head/clients/client_session.hpp"
#include "scored/head/clients/monitoring.hpp"
#include "scored/head/clients/overview.hpp"
#include "scored/head/cluster/facts_collector.hpp"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/cluster/trace_collector.hpp"
#include "scored/head/hooks/submit_hook.hpp"
#include "scored/head/jobs/arrays.hpp"
#include "scored/head/jobs/attempt_secrets.hpp"
#include "scored/head/jobs/fair_shares.hpp"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_queries.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/jobs/submissions.hpp"
#include "scored/head/jobs/task_starter.hpp"
#include "scored/head/jobs/waiting_jobs.hpp"
#include "scored/head/nodes/hook_reports.hpp"
#include "scored/head/nodes/node_manager.hpp"
#include "scored/head/nodes/node_session.hpp"
#include "scored/head/stacks/deadlock_check.hpp"
#include "scored/head/stacks/stacks_collector.hpp"
#include "scored/head/store/settings.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace score::head {

class Head final : private JobLife::Listener {
 public:
  // Reads incarnation, settings and jobs from the store. `io` and `clock` must outlive the head;
  // `reader` must read the same store. Errors: the store's.
  [[nodiscard]] static Result<std::unique_ptr<Head>> open(asio::io_context& io, Clock& clock,
                                                          HeadConfig config, Store store,
                                                          StoreReader reader,
                                                          DaemonRequests requests);
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;

  // Runs tick() when due, until cancelled.
  asio::awaitable<void> run_timer();
  // Must be called before the first node connects, if the database is an older copy than what the
  // nodes know (docs/adr/0071). Submissions are rejected until every node has said hello, or for
  // rejoin_grace.
  void recover_from_copy();
  // Does what is due; returns when to call again.
  TimePoint tick();

  // Stores what is left. Jobs continue.
  void stop() { commits_.stop(); }

  // Ends the hooks that run. It must be awaited before the head is destroyed.
  asio::awaitable<void> stop_hooks() { return submit_hook_.stop(); }

  // These are the parts that the sessions and the monitoring use.
  [[nodiscard]] ClientSession::Parts for_clients();
  [[nodiscard]] NodeSession::Parts for_nodes();
  [[nodiscard]] Monitoring::Parts for_monitoring();

  [[nodiscard]] const HeadConfig& config() const { return config_; }

  [[nodiscard]] Users& users() { return users_; }

  [[nodiscard]] NodeLinks& links() { return links_; }

  [[nodiscard]] NodeManager& nodes() { return nodes_; }

  [[nodiscard]] ControlManager& control() { return control_; }

  [[nodiscard]] JobStreams& streams() { return streams_; }

  [[nodiscard]] const AttemptSecrets& secrets() const { return secrets_; }

  [[nodiscard]] Admin& admin() { return admin_; }

  [[nodiscard]] Notices& notices() { return notices_; }

  [[nodiscard]] const Overview& overview() const { return overview_; }

  // With two heads, sets the function that returns the state of each, as `score info` shows it.
  void set_heads(std::function<std::vector<wire::HeadState>()> states) {
    overview_.set_heads(std::move(states));
  }

  // See Overview::set_node_faults().
  void set_node_faults(std::function<std::string(const std::string& node)> fault_of) {
    overview_.set_node_faults(std::move(fault_of));
  }

  [[nodiscard]] const EventFeed& events() const { return feed_; }

  [[nodiscard]] CommitLog& commits() { return commits_; }

  [[nodiscard]] LeaseCheck& lease() { return lease_; }

 private:
  struct Recovered {  // from the store, before the commit log owns it
    Epoch incarnation;
    JobId last_job;
    std::map<std::string, std::string> settings;
    std::vector<StoredJob> jobs;
    std::vector<UseSum> uses;
  };

  Head(asio::io_context& io, Clock& clock, HeadConfig config, const Recovered& recovered,
       Store store, StoreReader reader, DaemonRequests requests);

  static Result<Recovered> read(Store& store);
  Status recover(const Recovered& recovered);
  Status apply_settings(const StoredSettings& settings);
  void apply_stored(Setting setting, SettingValue value);
  Status recover_jobs(const std::vector<StoredJob>& stored,
                      const std::map<JobId, StoredRequeue>& requeues);
  void recover_requeue(const StoredRequeue& request, gang::RecoveredJob& job);
  void recover_ended_steps();
  Result<gang::RecoveredJob> recover_job(const StoredJob& stored);
  void defer_recovered(gang::RecoveredJob& job);
  [[nodiscard]] TimePoint start_of(const JobProgress& progress) const;
  void recover_cancels(const Recovered& recovered);
  void recover_keepers(const StoredSettings& settings);
  void take_newer_term(Epoch newest);
  void connect_runner();
  [[nodiscard]] TimePoint next_deadline() const;

  // ---- JobLife::Listener
  bool defers(Job& job) override;
  void accepted(Job& job) override;
  void began(const Job& job) override;
  void ended(const Job& job) override;

  HeadConfig config_;
  ClusterRunner runner_;
  StoreReader reader_;
  Alarm alarm_;
  EventFeed feed_;
  Users users_;
  NodeLinks links_;
  JobTable jobs_;
  CommitLog commits_;
  LeaseCheck lease_;
  HeadContext context_;
  JobStreams streams_;
  JobNetworks networks_;
  JobVolumes volumes_;
  FairShares shares_;
  Notices notices_;
  AttemptSecrets secrets_;
  ArrayTracker array_tracker_;
  JobQueries queries_;
  ReservationManager reservations_;
  JobLife life_;
  Arrays arrays_;
  WaitingJobs waiting_;
  TaskStarter starter_;
  SubmitHook submit_hook_;
  Submissions submissions_;
  Overview overview_;
  TraceCollector traces_;
  FactsCollector facts_;
  StacksCollector stacks_;
  DeadlockCheck deadlocks_;
  CheckpointManager checkpoints_;
  ControlManager control_;
  NodeManager nodes_;
  HookReports hook_reports_;
  Admin admin_;
  TimePoint next_save_{};  // of the use of running jobs
};

}  // namespace score::head
