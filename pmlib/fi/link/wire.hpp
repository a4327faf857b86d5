// Defines the contents of the provider's PM messages: a header of 16 bytes, for most kinds an
// extension, then the bytes themselves. Protocol: docs/reference/pm-fi.md.
//
// A peer belongs to the same job but may be broken: everything read here is checked before use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>

namespace score::pm::fi {

enum class MessageKind : std::uint8_t {
  Send = 1,        // a message without a tag; Extra unless the only flag is kSmallData
  Tagged = 2,      // a tagged message
  Fragment = 3,    // the next bytes of the message that this peer began last
  Write = 4,       // RmaExtra, then bytes for the memory it names
  WriteLarge = 5,  // RmaExtra: asks for a GoAhead
  Read = 6,        // RmaExtra: asks for a Reply, or for a transfer if it names a region
  Atomic = 7,      // AtomicExtra, then operands
  Reply = 8,       // answers Read and Atomic: tag = request, then the bytes
  GoAhead = 9,     // GoAheadExtra: memory is ready, write it
  Finished = 10,   // tag = inbound transfer: its bytes are in place
  Done = 11,       // tag = request: it has ended with `status`
};

// These are the bits of Header.flags.
constexpr std::uint8_t kHasData = 1;     // Extra.data is for the completion
constexpr std::uint8_t kSplit = 2;       // Fragments follow until Extra.length bytes are there
constexpr std::uint8_t kLarge = 4;       // announced only: answer with GoAhead
constexpr std::uint8_t kWantsDone = 8;   // answer with Done once received
constexpr std::uint8_t kSmallData = 16;  // Header.status is for the completion; no Extra
constexpr std::uint8_t kAllFlags = 31;   // all flags of a message
constexpr std::uint8_t kPart = 32;       // of a Write or Read: more ranges of the operation follow

struct Header {
  MessageKind kind = MessageKind::Send;
  std::uint8_t flags = 0;
  std::uint16_t from_port = 0;  // the endpoint within the sender
  std::uint16_t to_port = 0;
  std::uint16_t status = 0;  // errno, in Reply, Finished and Done; data, with kSmallData
  std::uint64_t tag = 0;     // of a message; memory's key; request or transfer
};

static_assert(sizeof(Header) == 16);

struct Extra {
  std::uint64_t data = 0;
  std::uint64_t length = 0;   // bytes of the whole message
  std::uint32_t request = 0;  // the sender's, for GoAhead and Done
  std::uint32_t reserved = 0;
};

static_assert(sizeof(Extra) == 24);

// Names memory that is registered with PM; see pm::RegionName.
struct RegionPlace {
  std::uint32_t region = 0;
  std::uint32_t nonce = 0;
  std::uint64_t offset = 0;
};

struct RmaExtra {
  std::uint64_t address = 0;  // in the memory that Header.tag names
  std::uint64_t length = 0;
  std::uint64_t data = 0;
  std::uint32_t request = 0;
  std::uint32_t inbound = 0;  // Read: the transfer to be finished; 0 = Reply
  RegionPlace place;          // Read: where the bytes go
};

static_assert(sizeof(RmaExtra) == 48);

enum class AtomicForm : std::uint8_t { Plain = 0, Fetch = 1, Compare = 2 };

struct AtomicExtra {
  std::uint64_t address = 0;
  std::uint32_t request = 0;
  std::uint16_t count = 0;
  std::uint8_t operation = 0;  // enum fi_op
  std::uint8_t datatype = 0;   // enum fi_datatype
  AtomicForm form = AtomicForm::Plain;
  std::uint8_t reserved[7] = {};
};

static_assert(sizeof(AtomicExtra) == 24);

struct GoAheadExtra {
  std::uint32_t request = 0;
  std::uint32_t inbound = 0;
  RegionPlace place;
  std::uint64_t length = 0;  // bytes wanted, at most what was announced
};

static_assert(sizeof(GoAheadExtra) == 32);

constexpr std::size_t kMaxHead = sizeof(Header) + sizeof(RmaExtra);

// Takes a T off the front of `bytes`; returns nullopt if they are too short.
template <class T>
std::optional<T> take(std::span<const std::byte>& bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes = bytes.subspan(sizeof(T));
  return value;
}

// Holds the header and the extension of one message in one piece.
struct MessageHead {
  std::array<std::byte, kMaxHead> bytes;
  std::size_t size = 0;

  explicit MessageHead(const Header& header) { add(header); }

  template <class T>
  MessageHead& add(const T& part) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kMaxHead);
    std::memcpy(bytes.data() + size, &part, sizeof part);
    size += sizeof part;
    return *this;
  }

  std::span<const std::byte> span() const { return {bytes.data(), size}; }
};

}  // namespace score::pm::fi
