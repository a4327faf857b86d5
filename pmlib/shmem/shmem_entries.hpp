// Defines the contents of a context's inbox: the kinds of entries, and the entries that the library
// sends to itself. Only Shmem uses this file.
#pragma once

#include "pmlib/core/segment.hpp"

#include <cstdint>

namespace score::pm {

enum InboxKind : std::uint16_t {
  kTaken = 0,  // handled before its turn
  kInline = 1,
  kPooled = 2,
  kLarge = 3,
  kOpDone = 4,  // {operation, errno}
  kWrite = 5,   // WriteOffer: a piece in the sender's pool buffer
  kRead = 6,    // ReadOffer: a request to write to the sender
  kInlineDatagram = 7,
  kPooledDatagram = 8,
};

// Returns true if the entry is for the library, not for the application.
constexpr bool is_internal(std::uint16_t kind) {
  return kind == kTaken || (kind >= kOpDone && kind <= kRead);
}

// Returns true if the bytes lie in the sender's pool.
constexpr bool is_pooled(std::uint16_t kind) {
  return kind == kPooled || kind == kPooledDatagram;
}

constexpr bool is_datagram(std::uint16_t kind) {
  return kind == kInlineDatagram || kind == kPooledDatagram;
}

struct WriteOffer {
  std::uint32_t region = 0;
  std::uint32_t nonce = 0;
  std::uint64_t offset = 0;
  std::uint32_t token = 0;     // value of pool_used() of the buffer while the offer is open
  std::uint32_t is_short = 0;  // 1: the whole write is short, which decides how to copy
};

struct ReadOffer {
  std::uint32_t region = 0, nonce = 0;  // read from the receiver of this entry
  std::uint64_t offset = 0;
  std::uint32_t to_region = 0, to_nonce = 0;  // destination at the sender
  std::uint64_t to_offset = 0;
  std::uint32_t op = 0;  // the sender's operation, to be ended
  std::uint32_t reserved = 0;
};

static_assert(sizeof(WriteOffer) <= sizeof(InboxEntry::bytes));
static_assert(sizeof(ReadOffer) <= sizeof(InboxEntry::bytes));

// Asks the kernel by a read that always fails, because the kernel checks the permission before the
// address.
bool is_crossing_allowed(pid_t pid);

}  // namespace score::pm
