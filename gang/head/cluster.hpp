// The head's brain: which job runs where and when. Pure: every call gets `now` (cluster time, the
// head's monotonic clock) and returns what must be done; it never blocks, never does I/O, never
// fails on what a node says (a stale or impossible report is counted and answered with a kill).
//
// The matrix has a row a slot and a column a core, columns grouped by node. A job lives in one
// home row, on the same cores everywhere, and also runs in every other row where all its cores are
// free (slot unification). Rows become slices of a cycle; each node gets its own column as a
// Timetable. Shares follow weights by stride scheduling (Waldspurger 1995) whose passes survive a
// change of epoch, so that frequent changes starve nobody.
#pragma once

#include "base/limits.hpp"
#include "base/model/model.hpp"
#include "base/result.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace score::gang {

using base::AttemptId;
using base::Duration;
using base::Epoch;
using base::JobId;
using base::JobState;
using base::NodeId;
using base::SlotIndex;
using base::TimePoint;
using base::UserId;

struct ClusterConfig {
  Duration quantum = base::limits::kDefaultQuantum;
  std::uint32_t max_slots = base::limits::kDefaultSlots;  // rows of the matrix
  bool switch_always = false;  // at every boundary, also between slices of the same jobs
  // Notice that a new timetable needs where something runs: so much, a little for each node that is
  // told, and no more than the most.
  Duration epoch_lead = std::chrono::milliseconds{4};
  Duration epoch_lead_per_node = std::chrono::microseconds{250};
  Duration most_epoch_lead = std::chrono::milliseconds{20};
  Duration idle_lead = std::chrono::milliseconds{2};    // ... when none of its nodes runs anything
  Duration epoch_gap = std::chrono::milliseconds{5};    // changes that come faster share an epoch
  Duration launch_deadline = std::chrono::seconds{10};  // to Prepared from every node
  Duration kill_deadline = std::chrono::seconds{5};     // to Exited, then the node is suspect
  Duration suspect_after = limits::kSuspectAfter;       // without a heartbeat
  Duration dead_after = limits::kDeadAfter;
  Duration rejoin_grace = std::chrono::seconds{10};  // a restarted head waits for its nodes
  std::uint32_t max_requeues = 3;                    // of one job, after a lost node
  bool idle_detection = true;                        // idle jobs give their slices to the others
  bool overcommit = true;  // tasks of a job share cores where each cannot have its own
  Duration unsettled_idle = std::chrono::seconds{1};  // idle although messages lie about
  Duration deadlock_after = std::chrono::seconds{3};  // all waits for messages, for this long
};

// ---- actions: carried out by the shell, in order -------------------------------------------
// A JobChanged that comes before messages to nodes must be on disk before those are sent: a head
// that restarts must know of every attempt that may run (Launching) and of every attempt that was
// told to start (Running).

struct SendToNode {
  NodeId node{0};
  base::HeadToNode message;  // PrepareTasks has an empty spec: the shell fills it in
};

struct JobChanged {  // state, reason, placement or exit code changed: persist, tell watchers
  JobId job{0};
};

struct NodeChanged {  // up, suspect, down, drained
  NodeId node{0};
};

using Action = std::variant<SendToNode, JobChanged, NodeChanged>;
using Actions = std::vector<Action>;

// ---- views: what commands and the dashboard show -------------------------------------------

enum class NodeState : std::uint8_t { Unknown, Up, Suspect, Down };

struct NodeView {
  NodeId id{0};
  base::NodeInfo info;
  NodeState state = NodeState::Unknown;
  bool drained = false;
  std::string drain_reason;
  std::string down_reason;
  base::Bytes memory_reserved{0};
  std::vector<JobId> jobs;
};

// What a running job does, as far as its nodes can tell.
enum class JobActivity : std::uint8_t {
  Busy,        // needs the processor, or nobody knows
  Idle,        // on every node it waits; its slices are for others that want them
  Deadlocked,  // ... for messages only, and nobody is left to send one
};

struct JobView {
  JobId id{0};
  UserId user{0};
  AttemptId attempt{0};  // value 0 until placed
  JobState state = JobState::Pending;
  base::ResourceRequest request;
  std::vector<NodeId> nodes;                 // [node index]; empty until placed
  std::vector<std::uint32_t> tasks_on_node;  // [node index]
  std::optional<SlotIndex> slot;             // home row
  std::uint32_t rows_used = 0;               // home row and those won by unification
  double share = 0;                          // fraction of time it is scheduled now, 0 ... 1
  Duration scheduled{0};  // time its gang was scheduled so far, from the timetable
  std::optional<TimePoint> submitted, started, ended;
  std::vector<std::string> reasons;  // why it waits, all of them; or how it ended (first = cause)
  int exit_code = 0;  // UX.md: highest of tasks, 128+signal, 124 limit, 125 error, 126/127 launch
  std::vector<base::TaskExit> exits;
  std::optional<JobState> ending;  // while Completing: the final state it will reach
  bool keep_going = false;
  JobActivity activity = JobActivity::Busy;
  bool background = false;                        // idle, and out of the timetable for others
  std::uint32_t restarts = 0;                     // how often it was requeued
  std::string lost;                               // why, the last time
  std::vector<std::vector<std::uint32_t>> cores;  // [node index]; empty until placed
  std::uint32_t tasks_per_core = 1;               // > 1: so many share the cores of one task
};

// One slice of the current cycle, for display.
struct SliceView {
  SlotIndex slot{0};
  Duration length{0};
  std::vector<JobId> jobs;
};

struct MatrixView {
  Epoch epoch{0};
  Duration quantum{0};
  Duration cycle{0};
  std::vector<SliceView> slices;
  std::optional<TimePoint> start{};  // of a cycle: the slices follow from here, again and again
};

struct ClusterCounters {
  std::uint64_t epochs = 0;         // timetables published
  std::uint64_t late_epochs = 0;    // reported late by a node
  std::uint64_t stale_reports = 0;  // about an attempt or node that is not, or no more, ours
  std::uint64_t jobs_started = 0, jobs_ended = 0;
  std::uint64_t idle_left = 0, idle_returned = 0;  // jobs that left the timetable and came back
  std::uint64_t early_yields = 0;  // slices cut short because nobody was left in them
};

// What a restarted head knows of a job from its database.
struct RecoveredJob {
  JobId id{0};
  UserId user{0};
  base::ResourceRequest request;
  JobState state = JobState::Pending;  // not final
  AttemptId attempt{0};
  std::vector<NodeId> nodes;
  std::vector<std::vector<std::uint32_t>> cores;  // [node index]
  std::vector<std::uint32_t> tasks_on_node;
  Duration scheduled{0};
  std::optional<TimePoint> submitted, started;  // in this boot's monotonic time
  bool keep_going = false;
  std::uint32_t restarts = 0;
  std::optional<JobState> ending;  // as in JobView, with what led to it:
  int exit_code = 0;
  std::vector<std::string> reasons;
};

enum class EndCause : std::uint8_t { User, Operator, FrontEndGone, Shutdown };

class Cluster {
 public:
  explicit Cluster(ClusterConfig config);
  ~Cluster();
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;

  // ---- nodes
  // Makes a node known (from the configuration), state Unknown. Error: name or id twice.
  base::Result<void> add_node(NodeId node, std::string name);
  // The node said hello: Up. Its attempts are reconciled: unknown or stale ones are killed, known
  // ones go on, what the head thinks runs there but does not has failed with the node.
  Actions node_connected(NodeId node, const base::NodeHello& hello, TimePoint now);
  Actions node_disconnected(NodeId node, TimePoint now);  // Suspect now, Down at its deadline
  Actions heartbeat(NodeId node, TimePoint now);
  base::Result<Actions> drain(NodeId node, std::string reason, TimePoint now);
  base::Result<Actions> resume_node(NodeId node, TimePoint now);

  // ---- jobs
  // Can this ever run on the cluster as configured? Error: one clear line (too many nodes ...).
  base::Result<void> check(const base::ResourceRequest& request) const;
  // `job` must be new (the shell numbers and stores jobs). Errors as check(). Places at once if
  // it can; else the job is Pending and job(job).reasons says why.
  base::Result<Actions> submit(JobId job, UserId user, const base::ResourceRequest& request,
                               TimePoint now);
  // What submit() would come to now: Pending with its reasons, or Launching with nodes,
  // tasks_on_node and slot. Changes nothing. Errors as check().
  base::Result<JobView> plan(const base::ResourceRequest& request) const;
  Actions recover(const std::vector<RecoveredJob>& jobs, TimePoint now);
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

  // ---- what nodes say about attempts (everything of NodeToHead except NodeHello)
  Actions node_says(NodeId node, const base::NodeToHead& message, TimePoint now);

  // ---- control
  base::Result<Actions> set_quantum(Duration quantum, TimePoint now);  // next boundary
  base::Result<Actions> set_max_slots(std::uint32_t slots, TimePoint now);
  Actions set_idle_detection(bool on, TimePoint now);
  void set_max_requeues(std::uint32_t times);
  void set_overcommit(bool on);  // of jobs that are submitted from now on
  Actions tick(TimePoint now);   // deadlines, limits; call at next_deadline() or later
  std::optional<TimePoint> next_deadline() const;
  // Forgets a job in a final state. Its id stays used.
  void forget(JobId job);

  // ---- views; a reference lives until the next call that is not const
  base::Result<JobView> job(JobId job, TimePoint now) const;
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
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace score::gang
