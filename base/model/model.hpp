// These are the values that cross process boundaries: jobs, nodes, timetables and the messages
// between the head's core (gang::Cluster) and a node's core (gang::NodeAgent). They are plain
// values without I/O. Only proto/convert.* turns them into bytes and back.
#pragma once

#include "base/ids.hpp"
#include "base/model/distribution.hpp"
#include "base/model/usage.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace score::base {

// ---- nodes ---------------------------------------------------------------------------------

// A GenericResource is a countable resource besides cores and memory, such as ("gpu", 2). It
// describes what a node offers, or what a job requests on each of its nodes.
struct GenericResource {
  std::string name;  // as a host name
  std::uint32_t count = 0;
  Bytes memory{0};      // per unit; 0: a node does not count it, a job takes all of it
  bool shared = false;  // of a node: jobs of different rows may have the same unit

  friend bool operator==(const GenericResource&, const GenericResource&) = default;
};

// A GenericShare lists the units of one resource that a job has on one node, ascending from 0.
struct GenericShare {
  std::string name;
  std::vector<std::uint32_t> indices;

  friend bool operator==(const GenericShare&, const GenericShare&) = default;
};

// NodeInfo describes what a node offers. The node itself reports it when it connects.
struct NodeInfo {
  std::string name;         // as in the configuration; a host name part, at most 63 bytes
  std::uint32_t cores = 1;  // columns of the matrix that belong to this node, >= 1
  Bytes memory{0};          // memory that jobs may reserve, all rows together
  std::vector<GenericResource> generic{};
  Bytes scratch{0};                     // for jobs' striped volumes, all rows together
  std::vector<std::string> features{};  // words that jobs may ask for
  Bytes swap{0};                        // may hold the memory of parked jobs; 0: it parks none

  friend bool operator==(const NodeInfo&, const NodeInfo&) = default;
};

// ---- jobs ----------------------------------------------------------------------------------

// A License is a number of licenses of one name. The whole cluster counts them, or a job holds
// them.
struct License {
  std::string name;  // as a host name
  std::uint32_t count = 0;

  friend bool operator==(const License&, const License&) = default;
};

// Queues are stored and sent by number.
//  Exclusive  no other job runs on its nodes
//  High       no job of a different queue has slices on its cores while it is busy
//  Urgent     like High, but ahead of all other jobs in line, and in extra rows if all are in use
enum class Queue : std::uint8_t { Exclusive, High, Normal, Urgent };

// Requeue selects whether a job starts again after it has lost a node. Default means the head's own
// setting.
enum class Requeue : std::uint8_t { Default, No, Yes };

// ResourceRequest holds what placement needs to know about a job. Everything else is opaque to the
// scheduler.
struct ResourceRequest {
  std::uint32_t nodes = 0;           // 0: as few as hold the tasks
  std::uint32_t tasks = 0;           // 0: one per node, or tasks_per_node on each
  std::uint32_t tasks_per_node = 0;  // 0: spread evenly
  std::uint32_t cpus_per_task = 1;
  Bytes memory_per_node{0};               // reserved on each of its nodes; 0: nothing reserved
  std::vector<std::string> only_nodes;    // operators: only these may be used; empty: any
  std::vector<std::string> except_nodes;  // never these
  Queue queue = Queue::Normal;
  std::uint32_t weight = 1;     // share of slices, 1 ... limits::kMaxWeight
  std::int32_t priority = 0;    // larger is placed earlier among waiting jobs
  bool held = false;            // waits until released
  Duration scheduled_limit{0};  // counts scheduled time only; 0: none
  Duration wall_limit{0};       // counts from the start of the tasks; 0: none
  bool overlay = false;         // parallel shell: takes no cores, is in no segment, never frozen
  Distribution distribution = Distribution::Block;  // of ranks; does not affect task placement
  bool kill_deadlock = false;  // end it when all its tasks wait for messages that no task can send
  Requeue requeue = Requeue::Default;
  std::uint32_t most_nodes = 0;  // as many as there is room for, at least `nodes`; 0: `nodes`
  bool own_cores = false;        // reject the job rather than let its tasks share cores
  bool no_fill = false;          // neither fills nor lets other jobs fill its slices
  JobId inside{0};               // a step: the job in whose cores it runs; 0: not a step
  std::uint32_t step = 0;        // its number within that job
  bool allocation = false;       // holds its cores for steps; its only task is on its first node
  bool overlap = false;          // a step that may share cores with other steps
  std::string account;           // account that is charged and limits it; empty: the user's default
  std::string reservation;       // runs in its nodes and time; empty: none
  std::vector<std::string> features;     // its nodes have all of them; "a|b": one of these
  std::vector<GenericResource> generic;  // on each of its nodes
  Bytes scratch{0};                      // of its own striped volume, over all its nodes
  // Sent this long before the limit that the job reaches first; 0: none.
  std::int32_t limit_signal = 0;
  Duration limit_signal_before{0};
  bool limit_signal_script = false;  // to the script of an allocation, not to its steps
  std::string partition;             // runs on its nodes only; empty: none
  std::vector<License> licenses;     // held while it has a place
  bool equal_share = false;          // divides its weight with such jobs of the same user and age
  std::uint32_t switches = 0;  // its nodes are within so many leaf switches at most; 0: any number
  Duration switches_wait{0};   // from its submission on, until any number will do; 0: without end
  bool no_park = false;        // its memory is never written to swap

  friend bool operator==(const ResourceRequest&, const ResourceRequest&) = default;
};

enum class JobState : std::uint8_t {
  Pending,     // accepted and on disk; waits for cores, memory or release
  Launching,   // placed; its nodes check and prepare; no task runs yet
  Running,     // the start was sent to every node
  Suspended,   // off the timetable by request; keeps its place and memory
  Completing,  // end decided; nodes are killing and reporting
  // Exactly one of these final states is ever reached.
  Completed,     // all tasks exited 0
  Failed,        // a task exited non-zero, was killed by a signal, or aborted
  Cancelled,     // by its owner, an operator, or its front end going away
  TimedOut,      // scheduled_limit or wall_limit
  NodeFailed,    // one of its nodes was lost
  LaunchFailed,  // a node refused it; the reason names node and cause
  OutOfMemory,   // the kernel killed one of its processes because memory was exhausted
};

constexpr bool is_final(JobState s) {
  return s >= JobState::Completed;
}

// Commands, events, logs and documents use these words for the states; the index is a JobState.
inline constexpr std::array<std::string_view, 12> kJobStateWords = {
    "pending", "launching", "running",   "suspended",   "completing",    "completed",
    "failed",  "cancelled", "timed-out", "node-failed", "launch-failed", "out-of-memory"};
static_assert(kJobStateWords.size() == static_cast<std::size_t>(JobState::OutOfMemory) + 1);

// TaskExit describes how one task ended.
struct TaskExit {
  Rank rank{0};
  std::int32_t code = 0;    // exit status 0 ... 255 if signal == 0
  std::int32_t signal = 0;  // terminating signal, else 0
  TimePoint ended{};        // when its shepherd saw it; at the head in cluster time; 0: unknown
  bool was_ending = false;  // it had ended before its node was asked to kill it

  friend bool operator==(const TaskExit&, const TaskExit&) = default;
};

// An attempt is one try at running a job. Its number lets a receiver recognise messages about an
// older try as stale.
inline constexpr std::uint64_t kAttemptsPerJob = 256;

constexpr AttemptId make_attempt(JobId job, std::uint64_t number) {
  return AttemptId{job.value() * kAttemptsPerJob + number};
}

constexpr JobId job_of(AttemptId attempt) {
  return JobId{attempt.value() / kAttemptsPerJob};
}

// ---- timetable -----------------------------------------------------------------------------

// During [offset, offset + length) of every cycle exactly `jobs` run on the node.
struct Segment {
  Duration offset{0};
  Duration length{0};
  std::vector<AttemptId> jobs;  // sorted, unique; empty: the node idles

  friend bool operator==(const Segment&, const Segment&) = default;
};

// A Timetable is a node's column of the matrix, in cluster time (the head's monotonic clock). The
// node follows it without further messages until one with a greater epoch starts. Segments are
// sorted, do not overlap and cover [0, cycle). Without segments the node has no jobs, and cycle is
// 0. An attempt with cores is frozen from its creation until a timetable runs it. Its first
// timetable may still lie in the future when it starts.
struct Timetable {
  Epoch epoch{0};
  TimePoint start{};  // cluster time at which it takes over; phase 0 of its first cycle
  Duration cycle{0};
  std::vector<Segment> segments;
  std::vector<AttemptId> managed;  // all attempts the node must hold frozen unless in the segment
  // If this is not 0, jobs that continue across a boundary are stopped and continued too, at start
  // + first_slice + any multiple of it. Every change between segments lies at such a boundary, or
  // at the start.
  Duration slice{0};
  Duration first_slice{0};  // (0, slice]
  // Idle attempts that gave their slices away and are not managed. They run under the watch of the
  // node, which stops one that needs the processor until a timetable includes it again. Sorted.
  std::vector<AttemptId> background{};
  // Managed attempts that may fill: outside their turn they run at idle priority instead of being
  // frozen, in segments whose jobs are all in this list too. Sorted.
  std::vector<AttemptId> fill{};
  // Managed attempts that are in no segment because jobs of queue high or urgent have their cores.
  // A node without a head lets them run when it has none of those jobs any more. Sorted.
  std::vector<AttemptId> displaced{};

  friend bool operator==(const Timetable&, const Timetable&) = default;
};

// ---- head -> node --------------------------------------------------------------------------

// PlacedTasks is a node's share of one attempt.
struct PlacedTasks {
  AttemptId attempt{0};
  UserId user{0};
  std::uint32_t node_index = 0;              // 0 ... nodes-1 within the job
  std::vector<std::uint32_t> tasks_on_node;  // [node index]
  Distribution distribution = Distribution::Block;
  std::vector<std::uint32_t> cores;  // of this node, cpus_per_task per task, in task order; fewer:
                                     // tasks share them; empty: an overlay job, never frozen
  Bytes memory{0};                   // limit on this node; 0: none
  std::uint32_t restarts = 0;        // number of earlier requeues of the job
  std::vector<std::uint32_t> nodes{};  // [node index] the head's number of the node; empty: they
                                       // do not meet directly (barrier mode)
  std::vector<GenericShare> generic{};
  Bytes scratch{0};  // of the job's volume on this node

  friend bool operator==(const PlacedTasks&, const PlacedTasks&) = default;
};

struct PrepareTasks {  // checks everything, starts nothing; answered by Prepared or Refused
  PlacedTasks placed;
  std::string spec;
};

struct StartTasks {  // answered by Started, or Exited at once
  AttemptId attempt{0};
};

struct SignalTasks {  // forwarded to every task of the attempt on this node
  AttemptId attempt{0};
  std::int32_t signal = 0;
};

struct KillTasks {  // empties the cgroup now; answered by Exited, even for an unknown attempt
  AttemptId attempt{0};
};

struct ForgetTasks {  // the head has recorded the end: drop what is kept for repeating Exited
  AttemptId attempt{0};
};

struct SetTimetable {
  Timetable timetable;
};

// Meeting names the points of a boundary at which the nodes of an attempt wait for each other, in
// barrier mode.
enum class Meeting : std::uint8_t {
  Stopped,  // it has stopped, and everything it had sent has left the node
  Ready,    // it may continue: its network is restored
};

inline constexpr std::size_t kMeetings = 2;
// Boundaries in cluster time that differ by at most this are the same boundary.
inline constexpr Duration kSameBoundary = std::chrono::microseconds{300};

struct MetAll {  // every node of the attempt has sent MeetingReached
  AttemptId attempt{0};
  Meeting meeting = Meeting::Stopped;
  TimePoint boundary{};  // cluster time
};

// ParkTasks asks for the memory of a frozen attempt to be written to swap, or read back. It is
// answered by ParkReport. It may be repeated, and the newest one counts.
struct ParkTasks {
  AttemptId attempt{0};
  bool out = false;     // false: read it back
  AttemptId behind{0};  // out: it is read ahead as the memory of this attempt leaves; 0: it is not
  Bytes room{0};        // likewise: memory that is free already
};

using HeadToNode = std::variant<PrepareTasks, StartTasks, SignalTasks, KillTasks, ForgetTasks,
                                SetTimetable, MetAll, ParkTasks>;

// MemoryShare says which jobs may get the memory of jobs that are parked.
enum class MemoryShare : std::uint8_t {
  Never,   // no job is parked
  Urgent,  // jobs of queue urgent
  Always,  // these; and that of suspended jobs, all jobs
};

// ---- node -> head --------------------------------------------------------------------------

enum class AttemptPhase : std::uint8_t { Preparing, Prepared, Running, Exited };

// AttemptReport describes one attempt on a node. The node sends it each time it connects.
struct AttemptReport {
  AttemptId attempt{0};
  AttemptPhase phase = AttemptPhase::Preparing;
  std::vector<TaskExit> exits;  // of tasks that have ended
  std::string reason;           // Exited: as in the message
  Duration filled{0};           // Exited: as in the message
  std::uint32_t oom_kills = 0;  // Exited: as in the message
  Usage usage{};                // Exited: as in the message

  friend bool operator==(const AttemptReport&, const AttemptReport&) = default;
};

struct NodeHello {
  NodeInfo info;
  std::vector<AttemptReport> attempts;
  Epoch epoch{0};  // greatest timetable it has seen: a restarted head goes on above it
};

struct Prepared {
  AttemptId attempt{0};
};

struct Refused {  // nothing of the attempt remains on the node
  AttemptId attempt{0};
  std::int32_t exit_code = 126;  // exit code of scrun: 126 cannot execute, 127 not found, 125
  std::string reason;            // one line, without the node's name
  bool may_retry = false;        // the job is not the cause: another launch may succeed
};

struct Started {
  AttemptId attempt{0};
};

struct TaskEnded {  // sent at once for each task, so that one failure can end the whole job
  AttemptId attempt{0};
  TaskExit exit;
};

struct Exited {  // nothing of the attempt runs on the node any more; repeated until ForgetTasks
  AttemptId attempt{0};
  std::vector<TaskExit> exits;  // every task of the node, in rank order
  std::string reason;           // empty, or why the node ended it ("memory limit 64M exceeded")
  Duration filled{0};           // processor time that its tasks used at idle priority
  std::uint32_t oom_kills = 0;  // its processes that the kernel killed for lack of memory
  Usage usage{};                // of its processes on the node
};

struct AbortRequested {  // a rank called MPI_Abort (PMI abort)
  AttemptId attempt{0};
  Rank rank{0};
  std::int32_t code = 1;
  std::string message;
  TimePoint asked{};  // as TaskExit::ended
  bool left = false;  // the rank did not call it: it ended without MPI_Finalize
};

struct TimetableApplied {  // sent once per epoch that was late or refused; not sent if in time
  Epoch epoch{0};
  Duration late{0};
};

// A TaskWait describes a task that waits until a message comes. `call` is the MPI function that it
// is in, or "" if unknown.
struct TaskWait {
  static constexpr std::int64_t kAny = -1;

  std::uint32_t rank = 0;
  std::string call{};
  std::int64_t source = kAny;  // rank
  std::int64_t tag = kAny;
  std::uint64_t bytes = 0;  // size of the buffer to be filled

  friend bool operator==(const TaskWait&, const TaskWait&) = default;
};

// Activity describes what a node's share of an attempt does. The share counts as busy until the
// node reports something else.
struct Activity {
  bool idle = false;   // has needed no processor for some slices
  bool waits = false;  // idle, and every task waits for a message of the job without a timeout
  std::uint64_t sent = 0, received = 0;  // messages so far, of all its contexts
  std::vector<TaskWait> tasks{};  // tasks that wait so, if idle: at most limits::kMaxTaskWaits

  friend bool operator==(const Activity&, const Activity&) = default;
};

struct ActivityChanged {  // of a running attempt; repeated after a lost connection
  AttemptId attempt{0};
  Activity activity;
};

struct MeetingReached {
  AttemptId attempt{0};
  Meeting meeting = Meeting::Stopped;
  TimePoint boundary{};  // cluster time
};

struct ParkReport {  // the answer to ParkTasks; repeated after a lost connection while it is out
  AttemptId attempt{0};
  bool out = false;  // it is out of memory; false: it is in memory again
  Bytes moved{0};    // in swap because of this, or read back
  Bytes stays{0};    // of its memory, what is still in the node's memory
  Duration took{0};
  std::string reason{};  // out: it could not be parked, and is in memory; one line
};

struct MemoryReport {  // sent while the node is short of memory, or has parked jobs
  bool is_short = false;
  Bytes spare{0};  // memory that is free beyond what the node keeps free
};

using NodeToHead =
    std::variant<NodeHello, Prepared, Refused, Started, TaskEnded, Exited, AbortRequested,
                 TimetableApplied, ActivityChanged, MeetingReached, ParkReport, MemoryReport>;

}  // namespace score::base
