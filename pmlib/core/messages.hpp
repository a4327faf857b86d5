// These types are common to the channel and shared memory: the clock of a job, messages, names of
// memory.
#pragma once

#include "pmlib/core/engine.hpp"
#include "pmlib/wire/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace score::pm {

// JobClock is the job's own clock: microseconds that stand still while the job is stopped.
class JobClock {
 public:
  virtual Microseconds now() = 0;

 protected:
  ~JobClock() = default;
};

// A ReceivedMessage is lent to the application until it is released.
struct ReceivedMessage {
  std::uint32_t source = 0;
  FrameKind kind = FrameKind::Message;  // Message, Datagram, or Large:
                                        // `bytes` is a LargeHeader
  std::span<const std::byte> bytes;
  std::uint32_t ticket = 0;  // for release()
  bool by_shmem = false;
};

// A RegionName identifies a place in a region of some rank.
struct RegionName {
  std::uint32_t region = 0;
  std::uint32_t nonce = 0;
  std::uint64_t offset = 0;  // bytes from its start
};

}  // namespace score::pm
