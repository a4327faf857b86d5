#pragma once
// Defines the header of a datagram between the daemons: the type of the message that follows.

#include "proto/frames/frames.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace score::control {

constexpr std::uint16_t kMessageVersion = 1;
// This limit lets a message with its header fit one frame of an Ethernet.
constexpr std::size_t kMostMessageBytes = 1300;

// Numbers are little-endian.
struct MessageHeader {
  std::uint16_t type = 0;     // proto::FrameType
  std::uint16_t version = 0;  // kMessageVersion
};

constexpr std::size_t kMostDatagramBytes = sizeof(MessageHeader) + kMostMessageBytes;

// The tag comes last: as the field `tag` of every message of control.proto, so that older daemons
// skip it.
constexpr std::size_t kTagBytes = 1 + sizeof(std::uint64_t);

// Writes the tag to the first kTagBytes of `end`.
void write_tag(std::uint64_t tag, std::span<std::byte> end);
// Returns the tag at the end of the datagram; nullopt if it has none.
[[nodiscard]] std::optional<std::uint64_t> read_tag(std::span<const std::byte> datagram);

// Returns true for the types of control.proto; no other frame travels in a datagram.
constexpr bool is_control(proto::FrameType type) {
  const auto number = static_cast<std::uint16_t>(type);
  return number >= 300 && number < 400;
}

enum class MessageFault : std::uint8_t {
  None,
  Malformed,   // shorter than the header, or longer than its type allows
  Unknown,     // no such type or version
  NotAllowed,  // the sender's rank may not send it
};

struct Message {
  proto::FrameType type{};
  std::string_view payload;  // not parsed; points into the datagram
};

// Checks `datagram` of rank `source`, and fills in `message` if it finds no fault.
[[nodiscard]] MessageFault read_message(std::span<const std::byte> datagram, std::uint32_t source,
                                        Message& message);

}  // namespace score::control
