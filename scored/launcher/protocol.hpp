// Node daemon <-> launcher: one Unix SOCK_SEQPACKET connection, fixed-size messages, one a packet.
// The launcher is the only root part: nothing of variable length is parsed here.
//
// Starting an attempt: the node daemon makes the cgroups `<root>/job_<attempt>/{shepherd,tasks}`,
// binds and listens on the attempt's shepherd socket, and sends Launch with that listening socket
// as the one descriptor. The launcher forks A; A (still privileged) joins `shepherd`, becomes a
// child subreaper and forks B, which joins `tasks` and a session of its own; then both drop to the
// user (setgroups, setresgid, setresuid, verified) and exec the shepherd program:
//   A: scored-shepherd shepherd   descriptor 3: listening socket, 4: stream socket to B
//   B: scored-shepherd spawner    descriptor 4: stream socket to A
// Both have /dev/null as 0 and 1, the launcher's log as 2, and an environment of PATH, HOME, USER,
// LOGNAME and SHELL.
// Where the daemon has made a directory for the attempt in the version 1 hierarchy of the cpu
// controller, B also joins that (see thaw.hpp for its name).
// B forks the tasks when A says so, so they are born in `tasks`; when B has exited they are A's
// children (subreaper). B's process group is the tasks' process group. When A has ended, whatever
// is left of it becomes the launcher's child (a subreaper too) and is killed.
//
// The lease is a timer of the daemon's, a timerfd that it hands over once and then only sets again
// and again: a renewal wakes no process. When it fires, everything is thawed, at normal priority;
// the same happens at once when the connection is lost while it runs.
// Ring: a raw socket that leads to the one interface that the command line names, with the receive
// ring and the filter of pmlib/devices/ethernet_device.hpp, or a packed AF_XDP socket
// (pmlib/devices/xdp_socket.hpp). What it may send is bounded by the kernel (rings.hpp).
//
// A packet that does not keep to this ends the connection. Replies come in the order of the
// requests. Packets of anyone but the daemon's user are never read.
#pragma once

#include <cstdint>

namespace score::launcher {

inline constexpr std::uint32_t kMagic = 0x4c524353;  // "SCRL"
inline constexpr std::uint32_t kVersion = 5;

enum class Op : std::uint32_t {
  Launch = 1,  // answered by Reply
  Lease = 2,   // with the timer as the one descriptor, instead of an earlier one; not answered
  Forget = 3,  // attempt is over: not thawed any more when the lease ends; not answered
  Ring = 4,  // an Ethernet ring for a task of a running attempt; answered by Reply with the socket
};

struct Request {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  Op op = Op::Forget;
  std::uint32_t user = 0;     // Launch: numeric user id; must exist on this node
  std::uint64_t attempt = 0;  // Launch, Forget, Ring
  // Launch: 0: the fallback without cgroups; 1: join them; 2: B joins the cpu directory too
  std::uint32_t in_cgroups = 0;
  std::uint32_t low_priority = 0;  // Launch: 1: tasks run below the node daemon, whose switcher has
                                   // no real-time priority
  // Ring: the filter, locked before the socket leaves the launcher, lets these frames through
  // alone.
  std::uint64_t key = 0;  // of the attempt; 0: its frames carry tags instead
  std::uint32_t rank = 0;
  std::uint32_t channel = 0;
  std::uint32_t xdp = 0;  // 1: by AF_XDP if the node can do that
  std::uint32_t reserved = 0;
};

static_assert(sizeof(Request) == 56);

// PM's generation in the frames of an attempt: what the kernel tells attempts on one channel apart
// by where their key does not travel. Not 0, and not secret.
constexpr std::uint32_t ring_generation(std::uint64_t attempt) {
  const auto folded = static_cast<std::uint32_t>(attempt ^ attempt >> 32);
  return folded == 0 ? 1 : folded;
}

// Reply::step when the node has no such user (error ENOENT), or cannot say.
inline constexpr char kLookUpUser[] = "look up the user";

struct Reply {
  std::uint32_t magic = kMagic;
  std::uint32_t error = 0;  // errno of what failed, 0: running
  std::uint64_t attempt = 0;
  std::int32_t shepherd_pid = 0;
  std::int32_t group = 0;  // process group of the tasks (B's pid)
  char step[40] = {};      // what failed, e.g. "setgroups"; zero-terminated
};

static_assert(sizeof(Reply) == 64);

}  // namespace score::launcher
