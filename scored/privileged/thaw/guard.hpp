// Defines what the node daemon and its guard share: see main.cpp.
#pragma once

#include <cstdint>

namespace score::thaw {

// These are the guard's descriptors. The socket is SOCK_SEQPACKET and ends with the daemon. The
// lease is a timerfd that the daemon sets again and again; a renewal wakes no process.
inline constexpr int kDaemonFd = 3;
inline constexpr int kLeaseFd = 4;

// Names a process group that must also be continued, if jobs have no cgroups; one per packet.
struct WatchedGroup {
  std::int32_t group = 0;
  std::uint32_t is_watched = 0;  // 0: no longer
};

inline constexpr std::uint32_t kMaxGroups = 256;

}  // namespace score::thaw
