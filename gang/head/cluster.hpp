// The head's scheduler: which job runs where and when. Pure: every call gets `now` (cluster time,
// the head's monotonic clock) and returns what must be done; it never blocks, never does I/O, never
// fails on what a node reports (a stale or impossible report is counted and answered with a kill).
//
// The matrix has a row per slot and a column per core, columns grouped by node. A job lives in one
// home row, on the same cores everywhere, and also runs in every other row where all its cores are
// free (slot unification). Rows become slices of a cycle; each node gets its own column as a
// Timetable. Shares follow weights by stride scheduling (Waldspurger 1995) whose passes survive a
// change of epoch, so that frequent changes starve no job. Queue high goes before the others: while
// a busy job of it has a core, no other job of that core gets slices.
//
// Cluster hands each call to the part that owns it, with one Step, and ends every change in the
// same way: jobs that wait are placed, and what changed is published.
#pragma once

#include "gang/head/recovery.hpp"
#include "gang/head/reports.hpp"
#include "gang/head/requests.hpp"
#include "gang/head/views.hpp"

#include <string>
#include <vector>

namespace score::gang {

class Cluster {
 public:
  explicit Cluster(ClusterConfig config);
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Before the first job; must outlive it. See gang/state/gate.hpp.
  void set_gate(Gate& gate) { placer_.set_gate(gate); }

  // The gate's answers have changed: waiting jobs are put in order and tried again.
  Actions reorder(TimePoint now);

  // ---- nodes
  // Makes a node known (from the configuration), state Unknown. Error: name or id twice.
  base::Result<void> add_node(NodeId node, std::string name);
  // The node said hello: Up. Its attempts are compared with what the head knows: unknown or stale
  // ones are killed, known ones go on, those that the node has lost have failed with it.
  Actions node_connected(NodeId node, const base::NodeHello& hello, TimePoint now);
  // Suspect now, Down at its deadline: soon, or after node_timeout if its daemon announced its
  // stop.
  Actions node_disconnected(NodeId node, TimePoint now, bool was_announced = false);
  Actions heartbeat(NodeId node, TimePoint now);
  // What other nodes say of nodes, in place of their own heartbeats.
  Actions hearsay(const Hearsay& hearsay, TimePoint now);
  base::Result<Actions> drain(NodeId node, std::string reason, TimePoint now);
  base::Result<Actions> resume_node(NodeId node, TimePoint now);

  // Takes the place of all reservations. Those of other users' nodes that have begun end the jobs
  // that are still there: their limit is reached (JobView::limit).
  Actions set_reservations(std::vector<Reservation> all, TimePoint now);
  // The jobs that have a place on its nodes and may still be there when it begins, ascending.
  std::vector<JobId> jobs_in_the_way(const Reservation& reservation, TimePoint now) const;

  // ---- jobs
  // Can this ever run on the cluster as configured? Error: one clear line (too many nodes ...).
  base::Result<void> check(const base::ResourceRequest& request) const;
  // `job` must be new (the shell numbers and stores jobs). Errors as check(). The job is placed at
  // once if possible; else it is Pending and job(job).reasons says why.
  base::Result<Actions> submit(JobId job, UserId user, const base::ResourceRequest& request,
                               TimePoint now);
  // What submit() would come to now: Pending with its reasons, or Launching with nodes,
  // tasks_on_node and slot. Changes nothing. Errors as check().
  base::Result<JobView> plan(const base::ResourceRequest& request, UserId user = UserId{0}) const;
  Actions recover(const std::vector<RecoveredJob>& jobs, TimePoint now);
  // Whether signal(), suspend() ... would be accepted now. number: the signal or the weight.
  base::Result<void> check(JobId job, JobRequest request, std::int64_t number = 0) const;
  base::Result<Actions> cancel(JobId job, EndCause cause, TimePoint now);
  base::Result<Actions> signal(JobId job, int signal, TimePoint now);  // running or suspended only
  base::Result<Actions> suspend(JobId job, TimePoint now);
  base::Result<Actions> resume(JobId job, TimePoint now);   // undoes suspend
  base::Result<Actions> hold(JobId job, TimePoint now);     // Pending only
  base::Result<Actions> release(JobId job, TimePoint now);  // undoes hold
  base::Result<Actions> set_weight(JobId job, std::uint32_t weight, TimePoint now);
  // Larger is placed earlier; of a waiting job at once.
  base::Result<Actions> set_priority(JobId job, std::int32_t priority, TimePoint now);
  // keep_going jobs are not ended by a failing task.
  base::Result<void> set_keep_going(JobId job, bool keep_going);
  // Its tasks were sent SIGTERM: until cancel() each may end in its own time and way. A task that
  // fails or leaves MPI without MPI_Finalize does not end the others; MPI_Abort does.
  base::Result<void> let_end(JobId job);

  // ---- what nodes report
  Actions node_says(NodeId node, const base::NodeToHead& message, TimePoint now);

  // ---- control
  // Whether set_quantum(), set_max_slots(), set_fill() would accept the value.
  static base::Result<void> check_quantum(Duration quantum);
  static base::Result<void> check_max_slots(std::uint32_t slots);
  base::Result<void> check_fill(bool on) const;
  base::Result<Actions> set_quantum(Duration quantum, TimePoint now);  // next boundary
  base::Result<Actions> set_max_slots(std::uint32_t slots, TimePoint now);
  // Rows beyond max_slots that urgent jobs may open.
  Actions set_urgent_slots(std::uint32_t slots, TimePoint now);
  Actions set_idle_detection(bool on, TimePoint now);
  // Errors: Unsupported (on, with ClusterConfig::can_fill false).
  base::Result<Actions> set_fill(bool on, TimePoint now);
  Actions set_fill_queues(std::vector<base::Queue> queues, TimePoint now);
  // Another job on a node of it has the same network channel, or none has any more. Jobs that have
  // ended are left alone.
  Actions set_shares_channel(JobId job, bool shares, TimePoint now);
  void set_max_requeues(std::uint32_t times);
  void set_overcommit(bool on);  // of jobs that are submitted from now on
  Actions tick(TimePoint now);   // deadlines, limits; call at next_deadline() or later
  std::optional<TimePoint> next_deadline() const;
  // Forgets a job in a final state. Its id stays used.
  void forget(JobId job);

  // ---- views; a reference lives until the next call that is not const
  base::Result<JobView> job(JobId job, TimePoint now) const;
  // Of a job that is Pending; see gang/forecast/expected_start.hpp.
  std::optional<TimePoint> expected_start(JobId job) const;
  std::vector<JobId> jobs() const;  // ascending
  base::Result<NodeView> node(NodeId node) const;
  base::Result<NodeId> node_by_name(const std::string& name) const;
  std::vector<NodeId> nodes() const;
  MatrixView matrix() const;
  const ClusterCounters& counters() const;
  const ClusterConfig& config() const;
  // Checks every invariant (see cluster_test and tests/sim); the first broken one as an error.
  base::Result<void> check_invariants(TimePoint now) const;

 private:
  // Runs one change, and what follows from it.
  template <typename Change>
  Actions apply(TimePoint now, Change&& change);
  template <typename Change>
  base::Result<Actions> try_apply(TimePoint now, Change&& change);
  void begin(const Step& step);
  void settle(Step& step);
  void deadline_due(Job& job, DeadlineKind kind, Step& step);
  void watch_scheduled_limit(Job& job, Step& step);
  void reach_limit(Job& job, std::string reason, Step& step);
  void leave_reserved_nodes(Step& step);

  [[nodiscard]] Shown shown() const { return {tables_, placer_, publisher_}; }

  Tables tables_;
  bool is_calendar_new_ = false;  // reservations have begun or ended
  Placer placer_;
  Publisher publisher_;
  Meetings meetings_;
  Ending ending_;
  IdleJobs idle_;
  Launching launching_;
  Reconciler reconciler_;
  Reports reports_;
  Requests requests_;
  Recovery recovery_;
};

}  // namespace score::gang
