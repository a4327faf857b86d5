// Defines the protocol of scored-park: one connected Unix SOCK_SEQPACKET socket as its standard
// input, and messages of fixed length. The request carries descriptors: the cgroup2 directory of
// the attempt's tasks, and memory.reclaim of that directory where the kernel has it. The answer to
// it is Out or Failed; reports of progress come before, so that a helper that is stuck in the
// kernel is known, and memory can be read back elsewhere as this memory leaves. After Out, orders
// have a part read ahead, which is not answered, and in the end everything read back, which is
// answered by Back. If the caller closes its end, scored-park ends and leaves the memory where it
// is.
#pragma once

#include <cstdint>

namespace score::park {

inline constexpr std::uint32_t kMagic = 0x4b505343;  // "CSPK"
inline constexpr std::uint32_t kVersion = 3;
inline constexpr std::uint32_t kTextBytes = 256;
inline constexpr std::uint64_t kProgressNs = 100'000'000;  // between reports of progress, at least

struct ParkRequest {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kVersion;
  std::uint64_t attempt = 0;
  std::uint64_t most_bytes = 0;  // may go to swap
  std::uint64_t least_rate = 0;  // bytes per second; a slower swap is not used
  std::uint64_t is_back = 0;     // 1: the memory is out already; only read it back
};

static_assert(sizeof(ParkRequest) == 40);

enum class Way : std::uint32_t {
  Back = 1,  // ends the writing, if it is in progress, and has all memory read back
  Ahead,     // has memory read until `most_bytes` of it have been read
};

// The newest order counts, but none counts after Back.
struct ParkOrder {
  std::uint32_t magic = kMagic;
  std::uint32_t way = static_cast<std::uint32_t>(Way::Back);
  std::uint64_t most_bytes = 0;  // since the memory went out
};

static_assert(sizeof(ParkOrder) == 16);

enum class Outcome : std::uint32_t {
  Out,
  Back,
  Failed,    // it is in memory; `text` says why
  Progress,  // the work goes on
};

struct ParkReply {
  std::uint32_t magic = kMagic;
  std::uint32_t outcome = 0;
  std::uint64_t moved_bytes = 0;  // in swap; Back: read back; Progress: so far
  std::uint64_t stays_bytes = 0;  // of its memory, not in swap
  std::uint64_t took_ns = 0;      // since the request; Back: since its order
  char text[kTextBytes] = {};     // one line; ends with a NUL
};

}  // namespace score::park
