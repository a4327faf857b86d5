// Defines the protocol between node daemon and launcher: one Unix SOCK_SEQPACKET connection,
// fixed-size messages, one per packet. The launcher runs as root, so it parses nothing of variable
// length.
//
// A request starts an attempt. The node daemon makes the attempt's cgroups, and binds and listens
// on its shepherd socket. It sends the descriptors of the socket, of the cgroup2 directories for
// the shepherd, the tasks and the helpers (O_PATH, its own), and perhaps of directories of version
// 1 controllers for tasks and helpers. The launcher forks A into the first cgroup. A looks the user
// up and forks B into the second, and for an attempt with scratch C into the third. B and C join
// the others and start new sessions. All then drop to the user and exec:
//   A: scored-shepherd shepherd   descriptor 3: listening socket, 4: stream socket to B, 5: to C
//   B: scored-shepherd spawner    descriptor 4: stream socket to A
//   C: scored-shepherd helpers    descriptor 4: stream socket to A
// They have /dev/null as 0 and 1, the launcher's log as 2, and an environment of PATH, HOME, USER,
// LOGNAME and SHELL. B forks the tasks when A asks for it, and C the helpers, so they are born in
// its cgroup. A is a subreaper. Processes that are left when A has ended become the launcher's
// children (it is a subreaper too) and are killed.
//
// The attempt cannot open the devices that a request denies: scored-device-guard, a child of A that
// has ended before B is forked, reads the list and attaches a program to the parent of the tasks'
// cgroup.
//
// An attempt that may be saved gets pid, ipc and mount namespaces of its own: the child runs
// scored-checkpoint as root, which makes them, and A is process 1 there. C is then
// scored-checkpoint with two capabilities, and so is B if the tasks are restored from images. A
// gets the number of the process that waits for it outside, and "restore" if it restores.
//
// The user's directory for scratch is made, or found, by scored-scratch-directory, which is also a
// child of A.
//
// A reply is sent when all programs run or a step has failed, at most 5 s later. Replies may be in
// any order. An invalid packet ends the connection. Packets of a user other than the daemon's are
// never read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace score::launcher {

inline constexpr std::uint32_t kMagic = 0x4c524353;  // "SCRL"
inline constexpr std::uint32_t kVersion = 10;
inline constexpr std::size_t kMaxShepherds = 256;

inline constexpr std::size_t kDeniedBytes = 1024;

struct StartRequest {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint64_t attempt = 0;       // not 0
  std::uint32_t user = 0;          // numeric user id; must exist on this node
  std::uint16_t low_priority = 0;  // 1: tasks run below the node daemon, if the switcher has no
                                   // real-time priority
  std::uint8_t scratch = 0;        // 1: with a directory for scratch, and helpers
  std::uint8_t checkpoint = 0;     // 1: it may be saved; 2: also restored; never with scratch
  char denied[kDeniedBytes] = {};  // devices, "c195:0 b7:1"; zero-terminated; may be empty
};

static_assert(sizeof(StartRequest) == 24 + kDeniedBytes);

// Lists the descriptors of a request, in this order: 1, 4, or more up to kPlaces.
enum Place { kListener, kShepherdCgroup, kTasksCgroup, kHelpersCgroup, kVersion1 };

inline constexpr int kPlaces = kVersion1 + 4;

// This is StartReply::step when the node has no such user (error ENOENT), or cannot determine it.
inline constexpr char kLookUpUser[] = "look up the user";

struct StartReply {
  std::uint32_t magic = kMagic;
  std::uint32_t error = 0;  // errno of the step that failed; 0: running
  std::uint64_t attempt = 0;
  std::int32_t shepherd_pid = 0;
  std::int32_t group = 0;  // process group of the tasks (B's pid)
  char step[40] = {};      // the step that failed, e.g. "setgroups"; zero-terminated
};

static_assert(sizeof(StartReply) == 64);

}  // namespace score::launcher
