#pragma once
// This file names every limit of the project. Where two limits depend on each other, a
// static_assert says how. A full queue or a request beyond a limit is rejected with an error and
// counted, so that nothing grows unnoticed. It is free of Asio and fmt, because PM includes it.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace score::inline base::limits {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

// --- Cluster ---
inline constexpr std::uint32_t kMaxNodes = 16'384;
inline constexpr std::uint32_t kMaxCoresPerNode = 1'024;
inline constexpr std::uint32_t kMaxTasksPerNode = 4'096;
inline constexpr std::uint32_t kMaxTasksPerJob = 1U << 20;
inline constexpr std::uint32_t kMaxTasksPerCore = 128;  // of one job, where they share cores
static_assert(kMaxTasksPerCore <= kMaxTasksPerNode);
inline constexpr std::size_t kMaxNodeNameBytes = 64;  // HOST_NAME_MAX of Linux
inline constexpr std::size_t kMaxHostlistBytes = 256 * kKiB;

// --- Jobs ---
// Jobs that are queued or running; finished ones are rows in the database.
inline constexpr std::uint32_t kMaxActiveJobs = 65'536;
inline constexpr std::uint32_t kMaxFinishedJobs = 1'000'000;
inline constexpr std::uint32_t kMaxJobsPerNode = 256;
inline constexpr std::size_t kMaxJobNameBytes = 256;
inline constexpr std::size_t kMaxNodeFeatures = 64;       // features of a node
inline constexpr std::size_t kMaxFeatures = 16;           // features that a job requests
inline constexpr std::size_t kMaxGenericKinds = 16;       // kinds of generic resources of a node
inline constexpr std::uint32_t kMaxGenericCount = 256;    // units of one kind on a node
inline constexpr std::size_t kMaxLicenseKinds = 64;       // of the cluster
inline constexpr std::uint32_t kMaxLicenses = 1'000'000;  // of one kind
inline constexpr std::size_t kMaxPartitions = 256;
// The limit of execve(2) on Linux for argv and envp together: each string counts with its
// terminator and the pointer to it. A string in a message needs no more than that.
inline constexpr std::size_t kMaxExecBytes = 6 * kMiB;
inline constexpr std::size_t kExecBytesPerString = 9;
inline constexpr std::size_t kMaxSpawnBytes = 1 * kMiB;     // words of programs that tasks start
inline constexpr std::size_t kMaxSpawnWords = 64 * kKiB;    // number of these words
inline constexpr std::size_t kMaxProgramsBytes = 1 * kMiB;  // a file that lists programs
inline constexpr std::size_t kMaxScriptBytes = 512 * kKiB;  // script of a batch job
inline constexpr std::size_t kMaxLiveSteps = 256;           // steps of one job
inline constexpr std::size_t kMaxPathBytes = 4'096;         // PATH_MAX of Linux
inline constexpr std::size_t kMaxGroups = 65'536;           // NGROUPS_MAX of Linux
inline constexpr std::uint32_t kMinWeight = 1;
inline constexpr std::uint32_t kDefaultWeight = 100;
inline constexpr std::uint32_t kMaxWeight = 10'000;
inline constexpr std::int32_t kMaxPriority = 1'000'000;  // the sum of two does not overflow

// --- Frames between daemons and clients ---
inline constexpr std::size_t kMaxFrameBytes = 8 * kMiB;
inline constexpr std::size_t kMaxMessageDepth = 32;  // nesting of a message
static_assert(kMaxExecBytes + kMaxScriptBytes + kMiB / 2 <= kMaxFrameBytes,
              "the largest submission that is allowed fits into one frame");
static_assert(kMaxHostlistBytes < kMaxFrameBytes, "a list of all nodes fits into a frame");
static_assert(kMaxNodes * std::size_t{8} < kMaxHostlistBytes,
              "all nodes can be listed even if their numbers do not form ranges");

// --- Gang scheduling ---
inline constexpr nanoseconds kMinQuantum = milliseconds(1);
inline constexpr nanoseconds kDefaultQuantum = milliseconds(100);
inline constexpr nanoseconds kMaxQuantum = seconds(10);
inline constexpr std::uint32_t kDefaultSlots = 8;
inline constexpr std::uint32_t kMaxSlots = 64;
inline constexpr std::uint32_t kDefaultUrgentSlots = 2;  // rows for urgent jobs, beyond the slots
inline constexpr std::uint32_t kMaxUrgentSlots = 16;
inline constexpr std::size_t kMaxSegmentsPerCycle = 4'096;
// Limits of a node's report about tasks that wait for messages.
inline constexpr std::size_t kMaxTaskWaits = 32;
inline constexpr std::size_t kMaxCallName = 32;
static_assert(kMinQuantum < kDefaultQuantum && kDefaultQuantum < kMaxQuantum);
static_assert(kDefaultSlots <= kMaxSlots);
static_assert(kMaxSlots + kMaxUrgentSlots <= kMaxJobsPerNode,
              "a node can be in a job of every slot");
static_assert(kMaxSlots + kMaxUrgentSlots <= kMaxSegmentsPerCycle,
              "a cycle has at least one segment for each slot");

// --- Reservations ---
inline constexpr std::size_t kMaxReservations = 1'000;
inline constexpr std::size_t kMaxReservationUsers = 1'000;  // accounts count too
inline constexpr nanoseconds kMinReservation = seconds(1);  // length of a reservation
inline constexpr nanoseconds kMaxReservation = std::chrono::hours(24 * 366);
inline constexpr nanoseconds kMaxReservationAhead = std::chrono::hours(24 * 3'660);  // its start

// The least notice of a new timetable to nodes where something runs; it grows with the number of
// nodes.
inline constexpr nanoseconds kMinTimetableLead = milliseconds(4);
// scored-thaw continues all jobs when the node daemon has not renewed its lease for max(two quanta,
// this).
inline constexpr nanoseconds kMinThawLease = seconds(1);
inline constexpr std::uint32_t kThawLeaseQuanta = 2;

// --- Liveness: a node sends a heartbeat each period ---
// The values are derived in docs/adr/0056.
inline constexpr nanoseconds kHeartbeatPeriod = milliseconds(1'400);
// The period while a viewer watches the node's samples, which are sent at the same wake-up.
inline constexpr nanoseconds kWatchedHeartbeatPeriod = seconds(1);
// A node is suspect after this silence: it gets no new jobs.
inline constexpr nanoseconds kSuspectAfter = milliseconds(2'400);
// A node whose connection broke has this long to reconnect before its jobs end.
inline constexpr nanoseconds kReconnectGrace = seconds(3);
static_assert(kHeartbeatPeriod + seconds(1) <= kSuspectAfter,
              "one late heartbeat does not make a node suspect");
static_assert(kWatchedHeartbeatPeriod <= kHeartbeatPeriod);
static_assert(kMinThawLease < kReconnectGrace, "a node's jobs run again before they are given up");

// --- Deadlines ---
inline constexpr nanoseconds kHandshakeDeadline = seconds(5);  // connect to authenticated
inline constexpr nanoseconds kHeaderDeadline = seconds(5);     // first to last byte of a header
inline constexpr nanoseconds kFrameDeadline = seconds(30);     // header to end of frame
inline constexpr nanoseconds kWriteDeadline = seconds(30);     // a peer accepts no byte
inline constexpr nanoseconds kRequestDeadline = seconds(30);   // a client waits for an answer
inline constexpr nanoseconds kLaunchDeadline = seconds(10);    // all nodes have prepared a job
inline constexpr nanoseconds kKillGrace = seconds(5);          // SIGTERM to kill
inline constexpr nanoseconds kStopDeadline = seconds(10);      // a daemon's orderly stop
inline constexpr nanoseconds kReconnectMin = milliseconds(50);
inline constexpr nanoseconds kReconnectMax = seconds(2);
static_assert(kReconnectMin < kReconnectMax);
static_assert(kReconnectMax < kReconnectGrace,
              "a node whose connection broke retries within the grace");
static_assert(kKillGrace < kStopDeadline, "a daemon that stops can end what it must");

// --- Queues, windows, descriptors ---
inline constexpr std::size_t kMaxConnections = 4'096;  // clients of one head
inline constexpr std::size_t kMaxConnectionsPerUser = 1'024;
inline constexpr std::size_t kMaxLogins = 256;  // commands that one node daemon carries at a time
inline constexpr std::size_t kMaxLoginsPerUser = 64;
inline constexpr std::size_t kMaxUnauthenticated = 1'024;  // half-open, oldest closed first
inline constexpr std::size_t kReservedDescriptors = 32;  // for killing jobs when others are used up
inline constexpr std::size_t kMaxPeerQueueBytes = 64 * kMiB;
inline constexpr std::size_t kMaxClientQueueBytes = 16 * kMiB;
// These limits hold for all connections of one user together. Beyond the first number the user's
// requests wait and are not read; the connection that would exceed the second one is closed.
inline constexpr std::size_t kUserQueueRoom = 16 * kMiB;
inline constexpr std::size_t kMaxUserQueueBytes = 32 * kMiB;
inline constexpr std::size_t kMaxUserRequestBytes = 16 * kMiB;  // received and not yet handled
inline constexpr std::size_t kIoWindowBytes = 256 * kKiB;       // unacknowledged output of a stream
inline constexpr std::size_t kIoChunkBytes = 32 * kKiB;
inline constexpr std::size_t kMaxGroupCommit = 1'024;  // submissions in one transaction
static_assert(kIoChunkBytes * 2 <= kIoWindowBytes, "a stream can always have two chunks under way");
static_assert(kMaxFrameBytes <= kMaxClientQueueBytes && kMaxFrameBytes <= kMaxPeerQueueBytes,
              "the largest frame can be queued");
static_assert(kUserQueueRoom + kMaxFrameBytes <= kMaxUserQueueBytes,
              "a request that may begin can be answered");
static_assert(kMaxConnectionsPerUser < kMaxConnections, "one user cannot lock out the others");

// Token bucket of each user's requests. A request costs at least one token, and more if it keeps
// the thread busy for longer: kRequestsPerSecond of the cheapest requests use half of the thread.
inline constexpr double kRequestsPerSecond = 2'000;
inline constexpr double kRequestBurst = 4'000;
inline constexpr nanoseconds kTokenTime = std::chrono::microseconds(250);
inline constexpr std::size_t kTokenBytes = 64 * kKiB;  // bytes of a request per token
inline constexpr int kMaxJobsAsked = 1'000;            // per query; longer lists come in pages

// --- PMI key-value exchange ---
inline constexpr std::size_t kMaxPmiKeyBytes = 256;
inline constexpr std::size_t kMaxPmiValueBytes = 4'096;
inline constexpr std::size_t kMaxPmiLineBytes = 16 * kKiB;
inline constexpr std::size_t kMaxPmiBytesPerTask = 256 * kKiB;
static_assert(kMaxPmiKeyBytes + kMaxPmiValueBytes < kMaxPmiLineBytes, "a put fits into a line");

// --- Text ---
inline constexpr std::size_t kMaxConfigBytes = 1 * kMiB;
inline constexpr std::size_t kMaxLogLineBytes = 4'096;    // PIPE_BUF: one write is one line
inline constexpr std::size_t kMaxErrorTextBytes = 1'024;  // an error text sent to a peer
static_assert(kMaxErrorTextBytes < kMaxLogLineBytes, "an error fits into a log line");

}  // namespace score::inline base::limits
