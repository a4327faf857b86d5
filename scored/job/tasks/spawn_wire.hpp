#pragma once
// Defines the protocol of the shepherd (A) and the spawner (B). Both have the socket at descriptor
// 4; packets have a fixed size and carry the descriptors. B sends first, and A sends descriptors
// only after that: B may be frozen for long, and descriptors in a socket count against the user's
// limit.
//
//   B: Hello                    once, at its start
//   A: SendPlan + plan          the ShepherdPrepare bytes, in a memfd, once checked; perhaps
//                               the descriptors of a server that waits (waiting_server.hpp)
//   B: Ready                    B waits for the start
//   A: Fork + descriptors       of up to kTasksPerBatch tasks:
//                               stdin, stdout, stderr[, PMI][, network]
//   B: Forked (pids) | Failed
//   A: ForkLast + descriptors   as Fork, for the last of them
//   B: Forked (pids) | Failed   and exits: its children become children of A,
//                               which reaps none before it has read this
//
// If programs may start more tasks, B continues with the next SendPlan. The first plan may have no
// tasks here; in that case ForkLast has none.
//
// In a job that may be saved, B becomes scored-task-parent, which stays the parent of the tasks and
// sends Ended for each of its children.
//
// Both ends are the same program file, so the protocol has no version.

#include <array>
#include <cstdint>

namespace score::shepherd {

inline constexpr int kListenerFd = 3;
inline constexpr int kSpawnFd = 4;
inline constexpr int kHelpersFd = 5;  // of A only, and only for jobs with helpers
inline constexpr std::uint32_t kSpawnMagic = 0x50534353;  // "SCSP"
inline constexpr std::size_t kTasksPerBatch = 4;

struct SpawnRequest {
  enum class Kind : std::uint32_t { SendPlan = 1, Fork = 2, ForkLast = 3 };
  std::uint32_t magic = kSpawnMagic;
  Kind kind = Kind::SendPlan;
  std::uint32_t first = 0;  // Fork, ForkLast: local index of the first task
  std::uint32_t count = 0;  // Fork, ForkLast: tasks
};

static_assert(sizeof(SpawnRequest) == 16);

struct SpawnReply {
  enum class Kind : std::uint32_t { Hello = 1, Ready = 2, Forked = 3, Failed = 4, Ended = 5 };
  std::uint32_t magic = kSpawnMagic;
  Kind kind = Kind::Hello;
  std::uint32_t first = 0;  // Forked, Failed: as in the request
  std::uint32_t count = 0;  // Forked, Failed: tasks that were forked. Ended: 1 if by a signal
  std::int32_t error = 0;   // Failed: errno. Ended: exit code or signal
  std::int32_t pid = 0;     // Hello: the pid of B, as A sees it. Ended: of the child
  // Ended: processor time as user and in the kernel, in milliseconds; memory in KiB; page faults.
  std::array<std::int32_t, kTasksPerBatch> pids{};
};

static_assert(sizeof(SpawnReply) == 40);

}  // namespace score::shepherd
