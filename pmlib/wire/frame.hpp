// A frame travels between two endpoints of one job. See docs/reference/pm.md.
//
// Every frame names its job (64-bit key) and the job's incarnation (generation); a frame that does
// not match is counted and dropped. The checksum covers payload and header, in this order, so that
// the sum of a payload is computed only once even if its header changes.
//
// With tags the key is never sent. Its field holds a hash of the whole frame that only holders of
// the key can compute, and there is no checksum in addition. A recorded frame that is sent again is
// a duplicate to the go-back-N, until the numbers wrap.
#pragma once

#include "pmlib/wire/crc32c.hpp"
#include "pmlib/wire/siphash.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace score::pm {

// Numbers in a frame are little-endian, like on every machine that PM runs on.
static_assert(std::endian::native == std::endian::little);

constexpr std::uint8_t kFrameMagic = 'P';
constexpr std::uint8_t kFrameVersion = 2;

// PM's own Ethernet frames use the first of the two EtherTypes that IEEE 802 reserves for
// experiments.
constexpr std::uint16_t kEtherType = 0x88b5;

enum class FrameKind : std::uint8_t {
  // These kinds are sequenced: they have a number and are resent until acknowledged.
  Message = 1,      // a message of the application
  Large = 2,        // announces a large message: the payload is a LargeHeader
  OpDone = 3,       // RmaHeader: ends an operation of the receiver
  Write = 4,        // RmaHeader, then bytes for the receiver's memory
  ReadRequest = 5,  // RmaHeader of the region to read, then a ReadTarget
  Void = 6,         // takes the number of a frame whose operation was refused
  // These kinds are for control: they acknowledge numbers of the opposite direction.
  Ack = 16,
  Lose = 17,  // with a payload: a bit for each number behind it, 1 = stored
  Stop = 18,
  Go = 19,
  Deny = 20,  // a frame was not stored because it names memory that is not registered
  // These kinds are exchanged between the ends of a path; see PathDevice.
  Probe = 24,
  ProbeAnswer = 25,
  Piece = 26,
  // A datagram is neither numbered nor acknowledged: it may be lost, duplicated or reordered.
  Datagram = 32,
};

constexpr bool is_sequenced(FrameKind kind) {
  return kind >= FrameKind::Message && kind <= FrameKind::Void;
}

constexpr bool is_control(FrameKind kind) {
  return kind >= FrameKind::Ack && kind <= FrameKind::Deny;
}

constexpr bool is_of_path(FrameKind kind) {
  return kind >= FrameKind::Probe && kind <= FrameKind::Piece;
}

constexpr bool is_of_channel(FrameKind kind) {
  return is_sequenced(kind) || is_control(kind) || kind == FrameKind::Datagram;
}

// This value of FrameHeader.flags requests an ACK without delay because the sender waits for it.
constexpr std::uint8_t kAckNow = 1;

// FrameAuth selects how a frame is authenticated.
enum class FrameAuth : std::uint8_t {
  Key = 0,  // it names the job's key, and its checksum fits
  Tag = 1,  // its tag fits the job's key
};

struct FrameHeader {
  std::uint8_t magic = kFrameMagic;
  std::uint8_t version = kFrameVersion;
  FrameKind kind = FrameKind::Ack;
  std::uint8_t flags = 0;  // kAckNow or 0; frames with others are dropped
  std::uint16_t channel = 0;
  std::uint16_t length = 0;  // bytes of payload behind the header
  std::uint64_t key = 0;     // the job's; with FrameAuth::Tag the tag
  std::uint32_t generation = 0;
  std::uint32_t source = 0;       // rank
  std::uint32_t destination = 0;  // rank
  // The meaning of these fields depends on the kind; see frame_fields.hpp.
  std::uint32_t number = 0;
  std::uint32_t word = 0;
  std::uint16_t half0 = 0;
  std::uint16_t half1 = 0;
  std::uint32_t reserved = 0;  // 0
  std::uint32_t crc = 0;       // CRC-32C of payload, then of the 44 bytes before; 0 with a tag
};

static_assert(sizeof(FrameHeader) == 48 && std::is_trivially_copyable_v<FrameHeader>);
static_assert(offsetof(FrameHeader, key) == 8 && offsetof(FrameHeader, source) == 20);
static_assert(offsetof(FrameHeader, number) == 28 && offsetof(FrameHeader, word) == 32);
static_assert(offsetof(FrameHeader, half0) == 36 && offsetof(FrameHeader, half1) == 38);
static_assert(offsetof(FrameHeader, crc) == 44);

// An RmaHeader leads the payload of Write, ReadRequest and OpDone.
struct RmaHeader {
  std::uint32_t region = 0;  // index in the receiver's table
  std::uint32_t nonce = 0;   // the region's; a stale or invented handle does not fit
  std::uint64_t offset = 0;  // bytes from the start of the region
  std::uint32_t word = 0;    // see frame_fields.hpp
  std::uint32_t place = 0;   // kEnd, kReplyEnd or kMiddle

  static constexpr std::uint32_t kEnd = 0;       // the last frame of a write
  static constexpr std::uint32_t kReplyEnd = 1;  // the last frame of the answer to a read
  static constexpr std::uint32_t kMiddle = 2;    // any other frame of either
};

static_assert(sizeof(RmaHeader) == 24);

// A ReadTarget is where the bytes of a ReadRequest are written: memory of the node that reads.
struct ReadTarget {
  std::uint32_t region = 0;
  std::uint32_t nonce = 0;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;  // bytes
  std::uint32_t op = 0;
};

static_assert(sizeof(ReadTarget) == 24);

// A LargeHeader is the payload of Large.
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

// Headers are written word by word: a word that is stored in small fields and read back whole must
// wait each time until the stores reach the cache.
constexpr std::uint64_t words_of(std::uint32_t low, std::uint32_t high) {
  return std::uint64_t{low} | std::uint64_t{high} << 32;
}

template <class... Words>
void put_words(std::byte* at, Words... words) {
  static_assert((std::is_same_v<Words, std::uint64_t> && ...));
  ((std::memcpy(at, &words, 8), at += 8), ...);
}

// Completes the header at `at`, of which only the last word is missing.
inline void put_crc(std::byte* at, std::uint32_t payload_crc) {
  std::memset(at + offsetof(FrameHeader, reserved), 0, sizeof(std::uint32_t));
  const std::uint32_t crc = crc32c(payload_crc, at, offsetof(FrameHeader, crc));
  std::memcpy(at + offsetof(FrameHeader, crc), &crc, sizeof crc);
}

// Writes `h` to `at` and completes its crc there.
inline void put_sealed(std::byte* at, const FrameHeader& h, std::uint32_t payload_crc) {
  const auto kinds = static_cast<std::uint32_t>(h.magic | h.version << 8 |
                                                static_cast<int>(h.kind) << 16 | h.flags << 24);
  const auto sizes = std::uint32_t{h.channel} | std::uint32_t{h.length} << 16;
  const auto flow = std::uint32_t{h.half0} | std::uint32_t{h.half1} << 16;
  put_words(at, words_of(kinds, sizes), h.key, words_of(h.generation, h.source),
            words_of(h.destination, h.number), words_of(h.word, flow));
  put_crc(at, payload_crc);
}

inline bool seal_fits(const FrameHeader& header, std::uint32_t payload_crc) {
  return header.crc == crc32c(payload_crc, &header, offsetof(FrameHeader, crc));
}

// Derives a SipHash key from a job's 64-bit key, which is the only secret.
inline SipKey tag_key(std::uint64_t key) {
  std::uint64_t mixed = key + 0x9e3779b97f4a7c15;  // splitmix64
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return {key, mixed ^ (mixed >> 31)};
}

// Returns the tag of a header with key and crc 0 and its payload in two pieces, the first of whole
// 8-byte words.
[[gnu::noinline]] inline std::uint64_t tag_of(const FrameHeader& header, std::uint64_t key,
                                              std::span<const std::byte> first,
                                              std::span<const std::byte> rest) {
  SipHash hash(tag_key(key));
  hash.add(std::as_bytes(std::span(&header, 1)));
  hash.add(first);
  return hash.finish(rest);
}

// Completes a header by the tag of the frame.
inline void seal_by_tag(FrameHeader& header, std::uint64_t key, std::span<const std::byte> first,
                        std::span<const std::byte> rest) {
  header.key = 0;
  header.crc = 0;
  header.key = tag_of(header, key, first, rest);
}

inline bool tag_fits(const FrameHeader& header, std::uint64_t key,
                     std::span<const std::byte> payload) {
  FrameHeader bare = header;
  bare.key = 0;
  return tag_of(bare, key, {}, payload) == header.key;
}

// A FrameIdentity describes the frames that an endpoint accepts.
struct FrameIdentity {
  std::uint64_t key = 0;
  std::uint32_t generation = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;  // ranks of the job
  std::uint16_t channel = 0;
  FrameAuth auth = FrameAuth::Key;
};

// Copies the header out of `frame`, which must hold at least one. Checks nothing.
inline FrameHeader header_of(std::span<const std::byte> frame) {
  FrameHeader h;
  std::memcpy(&h, frame.data(), sizeof h);
  return h;
}

// Returns how far sequence number `a` is beyond `b`; numbers wrap.
constexpr std::int32_t distance(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b);
}

enum class FrameVerdict {
  Good,
  Malformed,  // not a frame: too short, wrong magic, version, kind, length or rank
  Foreign,    // of a different job, channel or rank
  Stale,      // of a different incarnation of this job
  Corrupt,    // the checksum does not fit
  Forged,     // the tag does not fit
};

// Checks the whole of `frame`. On Good, `header` is filled and the payload follows it in `frame`. A
// kind for which `is_known` returns false is malformed.
inline FrameVerdict check_frame(std::span<const std::byte> frame, const FrameIdentity& me,
                                FrameHeader& header, bool (*is_known)(FrameKind) = is_of_channel) {
  if (frame.size() < sizeof(FrameHeader)) return FrameVerdict::Malformed;
  std::memcpy(&header, frame.data(), sizeof header);
  if (header.magic != kFrameMagic || header.version != kFrameVersion || header.flags > kAckNow ||
      header.reserved != 0 || header.length != frame.size() - sizeof(FrameHeader) ||
      !is_known(header.kind) || header.source >= me.size) {
    return FrameVerdict::Malformed;
  }
  const bool is_tagged = me.auth == FrameAuth::Tag;
  if ((!is_tagged && header.key != me.key) || header.channel != me.channel ||
      header.destination != me.rank) {
    return FrameVerdict::Foreign;
  }
  if (header.generation != me.generation) return FrameVerdict::Stale;
  if (is_tagged) {
    const auto payload = frame.subspan(sizeof(FrameHeader));
    return tag_fits(header, me.key, payload) ? FrameVerdict::Good : FrameVerdict::Forged;
  }
  const std::uint32_t sum = crc32c(0, frame.data() + sizeof(FrameHeader), header.length);
  return seal_fits(header, sum) ? FrameVerdict::Good : FrameVerdict::Corrupt;
}

}  // namespace score::pm
