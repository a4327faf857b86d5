// Defines the protocol of scored-hooks: one connected Unix SOCK_SEQPACKET socket as its standard
// input, one request of fixed length, and one reply of fixed length. A request names no path and no
// program: the hook comes from the configuration. If the caller closes its end first, the hook is
// killed.
#pragma once

#include <cstdint>

namespace score::hooks {

inline constexpr std::uint32_t kMagic = 0x4b484353;  // "SCHK"
inline constexpr std::uint32_t kVersion = 1;

inline constexpr std::size_t kNodeBytes = 64;
inline constexpr std::size_t kNodeListBytes = 2'048;
inline constexpr std::size_t kTextBytes = 416;

// Text fields end with a NUL. For a health check, all that concerns a job is 0 or empty.
struct HookRequest {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint32_t hook = 0;  // score::Hook
  std::uint32_t user = 0;
  std::uint64_t job = 0;
  std::uint64_t attempt = 0;
  std::uint32_t nodes = 0;  // number of the job's nodes
  std::uint32_t tasks = 0;  // of the job on this node
  char node[kNodeBytes] = {};
  char node_list[kNodeListBytes] = {};  // of the job; empty: it would be longer
};

static_assert(sizeof(HookRequest) == 40 + kNodeBytes + kNodeListBytes);

enum class Outcome : std::uint32_t {
  Passed,
  Absent,  // the configuration has no such hook
  Failed,  // `text` says why
};

struct HookReply {
  std::uint32_t magic = kMagic;
  std::uint32_t outcome = 0;
  char text[kTextBytes] = {};  // one line; ends with a NUL
};

// A submit hook reads the request from this file and writes its answer to that one. Only the head
// passes them, to a process of its own user.
inline constexpr int kSubmitInput = 3;
inline constexpr int kSubmitOutput = 4;
inline constexpr std::size_t kMostAnswerBytes = 65'536;

}  // namespace score::hooks
