#pragma once
// Defines the protocol of the shepherd (A) and the process that starts its helpers (C). C lies in
// the helpers' cgroup, so its children are born there. It sends nothing unasked.
//
//   A: HelperRequest + descriptors   the argument list in a memfd, each word with its zero byte;
//                                    then those that become 2, 3, 4 of the program. `has_extra`
//                                    is 0 if there is none for 3
//   C: HelperReply [+ pidfd]         one per request, in order
//
// Both ends are the same program file, so the protocol has no version. C ends with the socket, and
// its children with C.

#include <cstdint>

namespace score::shepherd {

inline constexpr std::uint32_t kHelperMagic = 0x50484353;  // "SCHP"

struct HelperRequest {
  std::uint32_t magic = kHelperMagic;
  std::uint32_t has_extra = 0;
};

static_assert(sizeof(HelperRequest) == 8);

struct HelperReply {
  std::uint32_t magic = kHelperMagic;
  std::int32_t error = 0;  // errno; 0: it runs, and a pidfd comes with this
  std::int32_t pid = 0;
};

static_assert(sizeof(HelperReply) == 12);

}  // namespace score::shepherd
