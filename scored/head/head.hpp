#pragma once
// The head between its parts: gang::Cluster decides, Head carries out. It feeds the cluster with
// what clients and nodes say, performs the actions, keeps the store up to date, and watches the
// deadlines that are not the cluster's. Knows connections, but no sockets. One thread, except the
// commit log's.
//
// The order that keeps promises:
//   a submission is answered, and given to the cluster, when it is on disk;
//   tasks are started when their placement is on disk (so a restarted head runs nothing twice);
//   nodes may forget an attempt when its end is on disk.

#include "base/async/asio.hpp"
#include "base/async/clock.hpp"
#include "base/async/task_group.hpp"
#include "gang/head/cluster.hpp"
#include "monitor/model/cluster_view.hpp"
#include "monitor/sampler/samples.hpp"
#include "proto/transport/key.hpp"
#include "scored/head/config/config.hpp"
#include "scored/head/config/users.hpp"
#include "scored/head/jobs/deadlines.hpp"
#include "scored/head/jobs/job.hpp"
#include "scored/head/jobs/job_streams.hpp"
#include "scored/head/jobs/network_board.hpp"
#include "scored/head/nodes/node_links.hpp"
#include "scored/head/observe/observer.hpp"
#include "scored/head/store/commit_log.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace score::head {

class Head {
 public:
  using SubmitDone = std::function<void(const Result<wire::Submitted>&)>;
  using TraceDone = std::function<void(wire::Trace)>;

  // io and clock must outlive it. reader: of the same store.
  Head(asio::io_context& io, Clock& clock, HeadConfig config, Store store, StoreReader reader);
  Head(const Head&) = delete;
  Head& operator=(const Head&) = delete;
  ~Head();

  // Incarnation, settings and jobs of the store; once, before anything else.
  [[nodiscard]] Status recover();
  // Runs tick() when due, until cancelled.
  asio::awaitable<void> run_timer();
  // Stores what is left. Jobs go on.
  void stop();
  // Called when all that was decided so far is on disk.
  void after_stored(std::function<void()> then);

  // ---- clients; the caller has checked the permission. Replies have no tag yet.
  void submit(const Peer& peer, wire::Submit&& message, SubmitDone done);
  // What submit() would come to. Errors: its refusals.
  [[nodiscard]] Result<wire::Planned> plan(const Peer& peer, wire::Submit&& message);
  [[nodiscard]] Status attach(const wire::Attach& message, ClientId client,
                              std::shared_ptr<proto::Connection> connection);
  [[nodiscard]] Status detach(JobId job, ClientId client);
  [[nodiscard]] Status signal(const Peer& peer, const wire::SignalJob& message);
  [[nodiscard]] Status cancel(const Peer& peer, const wire::CancelJob& message);
  [[nodiscard]] Status control(const Peer& peer, const wire::ControlJob& message);
  [[nodiscard]] Result<wire::JobList> list_jobs(const Peer& peer, const wire::ListJobs& message);
  [[nodiscard]] Result<wire::Accounting> accounting(const Peer& peer,
                                                    const wire::GetAccounting& message);
  [[nodiscard]] wire::NodeList list_nodes() const;
  [[nodiscard]] wire::Info info() const;
  // Errors: Busy (too many are being gathered).
  [[nodiscard]] Status trace(Duration since, TraceDone done);
  [[nodiscard]] Status set_quantum(const Peer& peer, Duration quantum);
  [[nodiscard]] Status set_slots(const Peer& peer, std::uint32_t slots);
  void set_idle_detection(const Peer& peer, bool on);
  [[nodiscard]] Status drain(const Peer& peer, const wire::DrainNodes& message);
  // Ends every job, then calls on_idle; at the latest after limits::kStopDeadline.
  void shut_down(const Peer& peer, std::function<void()> on_idle);
  // The checked new configuration; what cannot change is refused before.
  [[nodiscard]] Status reconfigure(HeadConfig wanted);

  // The user of a job, active or ended. Errors: NotFound.
  [[nodiscard]] Result<UserId> owner(JobId job);

  [[nodiscard]] JobStreams& streams() { return streams_; }

  [[nodiscard]] Users& users() { return users_; }

  // ---- nodes
  [[nodiscard]] NodeLinks& links() { return links_; }

  // With which heads of this cluster prove that they are; without it nobody believes them.
  void set_key(const proto::Key& cluster_key) { key_ = cluster_key; }

  [[nodiscard]] std::string proof() const;

  // Called once, when a node has shown that a later head than this one welcomed it.
  void on_outlived(std::function<void()> then) { on_outlived_ = std::move(then); }

  // The node says that there was this head. True: there was, and it is later than we are.
  [[nodiscard]] bool is_outlived(NodeId node, Epoch newest, std::string_view proof);
  void node_connected(NodeId node, const NodeHello& hello, NodeVitals vitals,
                      std::shared_ptr<proto::Connection> connection);
  // Nothing happens if the node has another connection by now.
  void node_lost(NodeId node, const proto::Connection& connection);
  void node_says(NodeId node, const NodeToHead& message);
  void heartbeat(NodeId node, const wire::Heartbeat& message);
  void trace_reply(NodeId node, wire::NodeTraceReply&& message);
  // The network of an attempt that runs on this node; the caller has checked that it does.
  void network_request(NodeId node, AttemptId attempt);
  void network_prepared(NodeId node, wire::NetworkPrepared&& message);
  void network_refused(NodeId node, const wire::NetworkRefused& message);

  void node_sampled(NodeId node, const wire::NodeSample& message);

  // ---- viewers
  // Told from now on; null: nobody.
  void observe(HeadObserver* observer) { observer_ = observer; }

  // The cluster as it is now; measurements, viewers and events are another's.
  [[nodiscard]] monitor::ClusterView show();

  // [node of the job], of an attempt that is its job's last one; else none. Valid until the next
  // event.
  [[nodiscard]] std::span<const NodeId> nodes_of(AttemptId attempt) const;

  // Where the dashboard is, for info().
  void set_dashboard_url(std::string url) { dashboard_url_ = std::move(url); }

  [[nodiscard]] const gang::ClusterCounters& counters() const { return cluster_.counters(); }

  // Waits of jobs that started: from submission to start.
  [[nodiscard]] const monitor::WaitHistogram& job_waits() const { return job_waits_; }

  [[nodiscard]] const HeadConfig& config() const { return config_; }

  [[nodiscard]] Epoch incarnation() const { return incarnation_; }

  [[nodiscard]] TimePoint now() const { return clock_.now(); }

  [[nodiscard]] std::string summary() const;  // "64/64 nodes, 3 jobs, slice 100ms"
  // Does what is due; returns when to call again.
  std::optional<TimePoint> tick();

 private:
  struct HeldFrame {  // waits for the commit log
    NodeId node;
    HeadToNode message;
  };

  struct TraceCollection {
    wire::Trace trace;
    std::set<NodeId> missing;
    std::size_t bytes = 0;
    TimePoint until{};
    TraceDone done;
  };

  using RequestKey = std::pair<UserId, RequestId>;

  Job* find(JobId job);

  [[nodiscard]] Result<gang::JobView> view(JobId job) const { return cluster_.job(job, now()); }

  // head_actions.cpp
  void perform(gang::Actions actions);
  void perform_one(gang::Action&& action);
  void send(NodeId node, HeadToNode&& message);
  void prepare(NodeId node, PrepareTasks&& message);
  Result<std::string> spec_for(AttemptId attempt, Job& job, const gang::JobView& view);
  void note_placement(Job& job, NodeId node, const PlacedTasks& placed);
  void kill_follows(AttemptId attempt);
  void hold(HeldFrame frame);
  void release_held();
  void refresh(JobId id);
  void note_state(Job& job, const gang::JobView& view);
  void note_requeue(Job& job, const gang::JobView& view);
  void note_wait(Job& job, const gang::JobView& view);
  void note_activity(Job& job, const gang::JobView& view);
  void save_progress(Job& job);
  void tell_watchers(Job& job, const gang::JobView& view);
  void end(Job& job, const gang::JobView& view);
  void drop_if_done(JobId id);
  void wake_timer();

  // head_networks.cpp
  struct NetworkPeer {  // who said it
    NetworkBoard::Job job;
    std::size_t index = 0;  // of the node in it
  };

  std::optional<NetworkPeer> network_peer(NodeId node, AttemptId attempt);
  void tell_nodes(AttemptId attempt, const NetworkPeer& peer, const NetworkBoard::Answer& answer);

  // head_view.cpp
  struct EventAbout {
    std::optional<JobId> job;
    std::optional<NodeId> node;
    std::string public_text;
  };

  static constexpr std::uint32_t kHiddenUser = UINT32_MAX;  // nobody's number
  [[nodiscard]] bool may_know(const Peer& peer, UserId user) const;
  void hide_from(const Peer& peer, wire::JobStatus& status) const;
  void show_nodes(monitor::ClusterView& out) const;
  void show_matrix(monitor::ClusterView& out) const;
  void show_jobs(monitor::ClusterView& out);
  void tell(monitor::EventKind kind, std::string text, EventAbout about);
  void tell_job(const Job& job, std::string_view what, std::string_view why);
  void tell_audit(const Peer& peer, std::string_view action, std::string_view value,
                  std::optional<JobId> job);

  // head_jobs.cpp, head_control.cpp
  struct Checked {
    AddJob add;
    ResourceRequest request;
  };

  Result<Checked> check(const Peer& peer, wire::Submit& message);
  Status check_limits(const Peer& peer, ResourceRequest& request);
  Result<AddJob> check_submission(const Peer& peer, wire::Submit& message,
                                  ResourceRequest& request);
  [[nodiscard]] bool is_limited(const Peer& peer);  // by [limits]
  [[nodiscard]] std::size_t jobs_of(UserId user) const;
  void count_out(UserId user);
  Status check_control(const Peer& peer, const Job& job, const wire::ControlJob& message);
  void note_keeper(const Peer& peer, Job& job, wire::ControlJob::What what);
  bool answer_repeated(const RequestKey& key, const SubmitDone& done);
  void store_submission(AddJob&& add, const ResourceRequest& request, const SubmitDone& done);
  void begin_job(AddJob&& add, const ResourceRequest& request);
  void refuse_stored(Job& job, const Error& error);
  void add_ended(const Peer& peer, bool all_users, wire::JobList& list);
  void finish_cancel(JobId id, gang::EndCause cause);
  void meet_deadline(const Deadlines::Due& due);
  [[nodiscard]] wire::JobStatus status_of(const Job& job, const gang::JobView& view);
  Result<wire::JobStatus> status_of(JobId id);

  // head.cpp
  Status apply_settings(const std::map<std::string, std::string>& settings);
  Status recover_jobs(const std::vector<StoredJob>& stored);
  void recover_cancels(const std::map<std::string, std::string>& settings);
  Result<gang::RecoveredJob> recover_job(const StoredJob& stored);
  [[nodiscard]] TimePoint start_of(const JobProgress& progress) const;
  Status add_node(const std::string& name);
  void check_idle();
  void finish_traces(TimePoint now);

  asio::io_context& io_;
  Clock& clock_;
  HeadConfig config_;
  gang::Cluster cluster_;
  StoreReader reader_;
  Users users_;
  NodeLinks links_;
  JobStreams streams_;
  NetworkBoard networks_;
  Deadlines deadlines_;
  Epoch incarnation_;
  std::optional<proto::Key> key_;
  std::function<void()> on_outlived_;
  JobId last_job_;
  std::map<JobId, Job> jobs_;  // active, and ended ones whose output is still wanted
  std::size_t active_ = 0;
  std::map<UserId, std::size_t> jobs_of_;                  // accepted and not ended, by user
  std::map<RequestKey, std::vector<SubmitDone>> storing_;  // not yet on disk

  std::deque<gang::Action> actions_;
  std::set<JobId> changed_;
  std::vector<HeldFrame> held_;
  bool performing_ = false;
  AttemptId spec_of_;  // the last specification that was encoded
  std::string spec_;

  HeadObserver* observer_ = nullptr;
  std::string dashboard_url_;
  static constexpr Duration kShownAfterEnd = 10s;
  std::deque<std::pair<TimePoint, wire::JobStatus>> lately_ended_;  // of kShownAfterEnd, a few
  monitor::WaitHistogram job_waits_;

  std::map<std::uint64_t, TraceCollection> traces_;
  std::uint64_t next_trace_ = 1;
  bool is_shutting_down_ = false;
  std::function<void()> on_idle_;
  std::optional<TimePoint> idle_deadline_;

  std::optional<TimePoint> armed_for_;
  TimePoint next_progress_save_{};
  asio::experimental::channel<void(boost::system::error_code)> wake_;
  std::optional<CommitLog> commits_;  // last: its callbacks use all of the above
  std::optional<Store> store_;        // until recover()
};

}  // namespace score::head
