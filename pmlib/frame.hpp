// The frame of PM: what travels on a wire between two endpoints of one job. See docs/pm.md.
//
// Every frame names its job (64-bit key) and the incarnation of it (generation); one that does not
// match is counted and dropped. The checksum covers payload and header, in this order, so that a
// payload is summed once however often its header changes.
#pragma once

#include "pmlib/crc32c.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace score::pm {

// Numbers on the wire are little-endian, as every machine this runs on.
static_assert(std::endian::native == std::endian::little);

constexpr std::uint8_t kFrameMagic = 'P';
constexpr std::uint8_t kFrameVersion = 1;

// EtherType of PM's own Ethernet frames: the first of the two IEEE 802 keeps for experiments.
constexpr std::uint16_t kEtherType = 0x88b5;

enum class FrameKind : std::uint8_t {
  // In sequence: they have a number and are resent until acknowledged.
  Message = 1,      // a message of the application
  Large = 2,        // announces a large message: the payload is a LargeHeader
  OpDone = 3,       // ends RmaHeader.op of the receiver with the errno in RmaHeader.nonce
  Write = 4,        // RmaHeader, then bytes for the receiver's memory
  ReadRequest = 5,  // RmaHeader of the region to read, then a ReadTarget
  Void = 6,         // keeps the place of a frame whose operation was refused
  // Control: numbers of the opposite direction.
  Ack = 16,
  Lose = 17,
  Stop = 18,
  Go = 19,
  Deny = 20,  // `sequence` was not stored: it names memory that is not registered
};

constexpr bool is_sequenced(FrameKind kind) {
  return kind >= FrameKind::Message && kind <= FrameKind::Void;
}

constexpr bool is_control(FrameKind kind) {
  return kind >= FrameKind::Ack && kind <= FrameKind::Deny;
}

// FrameHeader.flags: the sender waits for the ACK, do not delay it.
constexpr std::uint8_t kAckNow = 1;

struct FrameHeader {
  std::uint8_t magic = kFrameMagic;
  std::uint8_t version = kFrameVersion;
  FrameKind kind = FrameKind::Ack;
  std::uint8_t flags = 0;  // kAckNow or 0; others are dropped
  std::uint16_t channel = 0;
  std::uint16_t length = 0;  // bytes of payload behind the header
  std::uint64_t key = 0;
  std::uint32_t generation = 0;
  std::uint32_t source = 0;       // rank
  std::uint32_t destination = 0;  // rank
  std::uint32_t sequence = 0;     // of this frame, or the number a control frame speaks of
  std::uint32_t ack = 0;          // on sequenced frames: the last number stored here
  std::uint16_t count = 0;        // STOP and GO: their order
  std::uint16_t credit = 0;       // GO: free slots
  std::uint32_t reserved = 0;     // 0
  std::uint32_t crc = 0;          // CRC-32C of payload, then of the 44 bytes before this field
};

static_assert(sizeof(FrameHeader) == 48 && std::is_trivially_copyable_v<FrameHeader>);
static_assert(offsetof(FrameHeader, crc) == 44);

// Leads the payload of Write, ReadRequest and OpDone.
struct RmaHeader {
  std::uint32_t region = 0;  // index in the receiver's table
  std::uint32_t nonce = 0;   // must be the region's: a stale or invented handle does not fit
  std::uint64_t offset = 0;  // bytes from the start of the region
  std::uint32_t op = 0;      // the receiver's operation that the last frame completes; 0 = none
  std::uint32_t last = 0;    // 1 on the last frame of a reply
};

static_assert(sizeof(RmaHeader) == 24);

// Where the bytes of a ReadRequest go: memory of the node that asks.
struct ReadTarget {
  std::uint32_t region = 0;
  std::uint32_t nonce = 0;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;  // bytes
  std::uint32_t op = 0;
};

static_assert(sizeof(ReadTarget) == 24);

// Payload of Large.
struct LargeHeader {
  std::uint32_t region = 0;  // of the sender
  std::uint32_t nonce = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  // bytes
  std::uint32_t op = 0;      // of the sender, to be named in OpDone
  std::uint32_t reserved = 0;
};

static_assert(sizeof(LargeHeader) == 32);

// Completes `header.crc`. `payload_crc` is crc32c(0, payload).
inline void seal(FrameHeader& header, std::uint32_t payload_crc) {
  header.crc = crc32c(payload_crc, &header, offsetof(FrameHeader, crc));
}

inline bool seal_fits(const FrameHeader& header, std::uint32_t payload_crc) {
  return header.crc == crc32c(payload_crc, &header, offsetof(FrameHeader, crc));
}

// What an endpoint accepts.
struct FrameIdentity {
  std::uint64_t key = 0;
  std::uint32_t generation = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;  // ranks of the job
  std::uint16_t channel = 0;
};

enum class FrameVerdict {
  Good,
  Malformed,  // not a frame: too short, wrong magic, version, kind, length or rank
  Foreign,    // of another job, channel or rank
  Stale,      // of another incarnation of this job
  Corrupt,    // the checksum does not fit
};

// Checks `frame` whole. On Good, `header` is filled and the payload is what follows it.
inline FrameVerdict check_frame(std::span<const std::byte> frame, const FrameIdentity& me,
                                FrameHeader& header) {
  if (frame.size() < sizeof(FrameHeader)) return FrameVerdict::Malformed;
  std::memcpy(&header, frame.data(), sizeof header);
  if (header.magic != kFrameMagic || header.version != kFrameVersion || header.flags > kAckNow ||
      header.reserved != 0 || header.length != frame.size() - sizeof(FrameHeader) ||
      !(is_sequenced(header.kind) || is_control(header.kind)) || header.source >= me.size) {
    return FrameVerdict::Malformed;
  }
  if (header.key != me.key || header.channel != me.channel || header.destination != me.rank) {
    return FrameVerdict::Foreign;
  }
  if (header.generation != me.generation) return FrameVerdict::Stale;
  const std::uint32_t sum = crc32c(0, frame.data() + sizeof(FrameHeader), header.length);
  return seal_fits(header, sum) ? FrameVerdict::Good : FrameVerdict::Corrupt;
}

}  // namespace score::pm
