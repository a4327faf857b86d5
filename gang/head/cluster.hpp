// Cluster is the head's scheduler: it decides which job runs where and when. Every call gets `now`
// (cluster time, the head's monotonic clock) and returns the actions to take. A call never blocks,
// does no I/O and never fails because of a node's report: a stale or impossible report is counted
// and answered with a kill.
//
// The matrix has a row per slot and a column per core, with the columns grouped by node. A job
// lives in one home row, on the same cores everywhere, and also runs in every other row where all
// its cores are free (slot unification). Rows become slices of a cycle; each node gets its own
// column as a Timetable. Shares follow weights by stride scheduling (Waldspurger 1995). Its passes
// survive a change of epoch, so frequent changes starve no job. Queue high goes before the others:
// while a busy job of that queue has a core, no other job of that core gets slices.
//
// Cluster hands each call to the part that owns it, with one Step. Every change ends in the same
// way: waiting jobs are placed, and changes are published.
#pragma once

#include "gang/head/recovery.hpp"
#include "gang/head/reports.hpp"
#include "gang/head/requests.hpp"
#include "gang/head/views.hpp"

#include <map>
#include <string>
#include <vector>

namespace score::gang {

class Cluster {
 public:
  explicit Cluster(ClusterConfig config);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Must be called before the first job; the gate must outlive the cluster. See
  // gang/state/gate.hpp.
  void set_gate(Gate& gate) { placer_.set_gate(gate); }

  // Must be called before the first timetable, and when the head has become a later one. All heads
  // of a cluster have different incarnations; a later head has a greater one.
  void set_incarnation(Epoch incarnation) { publisher_.set_incarnation(incarnation); }

  // Sorts the waiting jobs again and tries to place them. The caller uses it when the gate's
  // answers have changed.
  Actions reorder(TimePoint now);

  // ---- nodes
  // Adds a node of the configuration in state Unknown. Fails if the name or the id exists already.
  base::Result<void> add_node(NodeId node, std::string name);
  // Checks whether remove_node() would be accepted now. Errors: NotFound, WrongState (it is not
  // drained, or jobs are on it).
  base::Result<void> check_removal(NodeId node) const;
  // Takes a node out of the cluster. add_node() with the same id and name brings it back.
  base::Result<Actions> remove_node(NodeId node, TimePoint now);
  // Records the hello of a node, which becomes Up. Its attempts are compared with those of the
  // head: unknown or stale ones are killed and known ones continue. Attempts that the node has lost
  // fail with it.
  Actions node_connected(NodeId node, const base::NodeHello& hello, TimePoint now);
  // Makes the node Suspect now and Down at its deadline. That is soon, or after node_timeout if its
  // daemon announced its stop.
  Actions node_disconnected(NodeId node, TimePoint now, bool was_announced = false);
  Actions heartbeat(NodeId node, TimePoint now);
  // Takes what other nodes report about nodes, in place of their own heartbeats.
  Actions relayed_heartbeats(const RelayedHeartbeats& relayed_heartbeats, TimePoint now);
  base::Result<Actions> drain(NodeId node, std::string reason, TimePoint now);
  base::Result<Actions> resume_node(NodeId node, TimePoint now);

  // Replaces all partitions. Jobs that have a place keep it; a waiting job whose partition is gone
  // waits until it is there again.
  Actions set_partitions(std::vector<Partition> all, TimePoint now);
  // Replaces the tree of switches. Jobs that have a place keep it.
  Actions set_topology(Topology topology, TimePoint now);
  // Replaces the numbers of licenses; see Licenses::set().
  Actions set_licenses(const std::vector<base::License>& totals, bool release_suspended,
                       TimePoint now);

  const Licenses& licenses() const { return placer_.licenses(); }

  // Counts the waiting jobs that ask for each license.
  std::map<std::string, std::uint32_t> waiting_for_licenses() const;

  // Replaces all reservations. When one for other users has begun, the jobs that are still on its
  // nodes reach their limit (JobView::limit) and end.
  Actions set_reservations(std::vector<Reservation> all, TimePoint now);
  // Returns the jobs, ascending, that are placed on its nodes and may still be there when it
  // begins.
  std::vector<JobId> conflicting_jobs(const Reservation& reservation, TimePoint now) const;

  // ---- jobs
  // Checks whether the request can ever run on the cluster as configured. The error is one line for
  // the user (too many nodes ...).
  base::Result<void> check(const base::ResourceRequest& request) const;
  // Submits a job; `job` must be a new id (the shell numbers and stores jobs). Errors: as of
  // check(). The job is placed at once if possible; otherwise it is Pending, and job(job).reasons
  // states the reasons.
  base::Result<Actions> submit(JobId job, UserId user, const base::ResourceRequest& request,
                               TimePoint now);
  // Returns what submit() would return now, without a change: Pending with its reasons, or
  // Launching with nodes, tasks_on_node and slot. Errors: as of check().
  base::Result<JobView> plan(const base::ResourceRequest& request, UserId user = UserId{0}) const;
  Actions recover(const std::vector<RecoveredJob>& jobs, TimePoint now);
  // Checks whether signal(), suspend() ... would be accepted now. `number` is the signal or the
  // weight.
  base::Result<void> check(JobId job, JobRequest request, std::int64_t number = 0) const;
  base::Result<Actions> cancel(JobId job, EndCause cause, TimePoint now);
  base::Result<Actions> signal(JobId job, int signal, TimePoint now);  // running or suspended only
  base::Result<Actions> suspend(JobId job, TimePoint now);
  base::Result<Actions> resume(JobId job, TimePoint now);  // undoes suspend
  // Keeps a running job out of all slices until it is called again or the attempt ends, and shows
  // no other state of it. Its nodes let it run when the head is gone. It is not stored. Errors:
  // NotFound, WrongState, Unsupported, Busy (it is starting its tasks, or stopped already).
  base::Result<Actions> set_stopped(JobId job, bool is_stopped, TimePoint now);
  // Answers JobView::suspicion with what was seen of the tasks. An answer that is out of date, or
  // to a job that has ended, changes nothing.
  Actions confirm_deadlock(JobId job, std::uint32_t suspicion, bool is_deadlock, TimePoint now);
  base::Result<Actions> hold(JobId job, TimePoint now);     // Pending only
  base::Result<Actions> release(JobId job, TimePoint now);  // undoes hold
  base::Result<Actions> set_weight(JobId job, std::uint32_t weight, TimePoint now);
  // Sets the priority; a job with a larger one is placed earlier. It takes effect at once on a
  // waiting job.
  base::Result<Actions> set_priority(JobId job, std::int32_t priority, TimePoint now);
  // Checks whether change() would be accepted now.
  base::Result<void> check_change(JobId job, const base::ResourceRequest& request,
                                  TimePoint now) const;
  // Replaces the request. A waiting job is placed at once if that is possible now; of a placed one
  // only limits, the signal before them, weight, priority, requeue and queue may differ. Errors:
  // NotFound, WrongState (it is ending), and one line for the user that does not name the job.
  base::Result<Actions> change(JobId job, const base::ResourceRequest& request, TimePoint now);
  // Returns the job to the queue when its attempt has ended, whatever ends it. end_attempt() ends
  // it. The restart is not limited by max_requeues.
  base::Result<Actions> requeue(JobId job, std::string reason, TimePoint now);
  base::Result<Actions> end_attempt(JobId job, TimePoint now);
  // A failing task does not end a job with keep_going.
  base::Result<void> set_keep_going(JobId job, bool keep_going);
  // Records that the job's tasks were sent SIGTERM: until cancel() each may end in its own time and
  // way. A task that fails or leaves MPI without MPI_Finalize does not end the others; MPI_Abort
  // does.
  base::Result<void> let_end(JobId job);

  // ---- what nodes report
  Actions node_says(NodeId node, const base::NodeToHead& message, TimePoint now);

  // ---- control
  // Checks whether set() would accept the value. Errors: TooLarge, Unsupported (fill, with
  // ClusterConfig::can_fill false).
  base::Result<void> check(base::Setting setting, base::SettingValue value) const;
  // Changes a setting, from the next slice boundary on.
  base::Result<Actions> set(base::Setting setting, base::SettingValue value, TimePoint now);
  Actions set_fill_queues(std::vector<base::Queue> queues, TimePoint now);
  // Records whether a different job on one of its nodes has the same network channel. Jobs that
  // have ended are ignored.
  Actions set_shares_channel(JobId job, bool shares, TimePoint now);
  Actions tick(TimePoint now);  // handles deadlines and limits; call it at next_deadline() or later
  std::optional<TimePoint> next_deadline() const;
  // Forgets a job in a final state. Its id stays used.
  void forget(JobId job);

  // ---- views; a reference lives until the next call that is not const
  base::Result<JobView> job(JobId job, TimePoint now) const;
  // Returns the expected start of a Pending job; see gang/forecast/expected_start.hpp.
  std::optional<TimePoint> expected_start(JobId job) const;
  // Explains the share of a running job in one line; empty for other jobs.
  std::string share_reason(JobId job) const;
  std::vector<JobId> jobs() const;  // ascending
  base::Result<NodeView> node(NodeId node) const;
  std::vector<NodeId> nodes() const;
  MatrixView matrix() const;
  const ClusterCounters& counters() const;
  const ClusterConfig& config() const;
  // Checks every invariant (see cluster_test and tests/sim) and returns the first broken one as an
  // error.
  base::Result<void> check_invariants(TimePoint now) const;

 private:
  // Runs one change and its consequences.
  template <typename Change>
  Actions apply(TimePoint now, Change&& change);
  template <typename Change>
  base::Result<Actions> try_apply(TimePoint now, Change&& change);
  void begin(const Step& step);
  void settle(Step& step);
  void deadline_due(Job& job, DeadlineKind kind, Step& step);
  void watch_scheduled_limit(Job& job, Step& step);
  void watch_signal(Job& job, Step& step);
  void reach_limit(Job& job, std::string reason, Step& step);
  void leave_reserved_nodes(Step& step);
  [[nodiscard]] TimePoint earliest(const Job& job, Duration more, TimePoint now) const;
  void watch_age(Job& job, Step& step);
  void judge_ages(TimePoint now);

  [[nodiscard]] Shown shown() const { return {tables_, placer_, publisher_, ending_}; }

  Tables tables_;
  bool is_calendar_new_ = false;  // reservations have begun or ended
  Placer placer_;
  Publisher publisher_;
  Meetings meetings_;
  Ending ending_;
  IdleJobs idle_;
  Parking parking_;
  Launching launching_;
  Reconciler reconciler_;
  Reports reports_;
  Requests requests_;
  Recovery recovery_;
};

}  // namespace score::gang
