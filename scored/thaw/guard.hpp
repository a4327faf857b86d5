// What the node daemon and its guard share: see main.cpp.
#pragma once

#include <cstdint>

namespace score::thaw {

// The guard's descriptors. The socket is SOCK_SEQPACKET and ends with the daemon. The lease is a
// timerfd that the daemon sets again and again: a renewal wakes no process.
inline constexpr int kDaemonFd = 3;
inline constexpr int kLeaseFd = 4;

// A process group to continue too, where jobs have no cgroups; one per packet.
struct Group {
  std::int32_t group = 0;
  std::uint32_t is_watched = 0;  // 0: not any more
};

inline constexpr std::uint32_t kMaxGroups = 256;

}  // namespace score::thaw
