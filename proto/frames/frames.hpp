// The frame table: number, permitted senders and size of each frame. Everything here is generated
// from the (frame) options of the .proto files; proto/permissions.md is the same table for the
// reader, and a test holds the two together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace score::proto {

enum class FrameType : std::uint16_t;  // FrameType::Submit ...: named as the message
enum class Role : std::uint8_t;        // Role::OtherUser ...: see options.proto

struct FrameRule {
  FrameType type;
  const char* name;             // of the message
  std::uint32_t max_bytes;      // of the payload
  std::uint32_t allowed_roles;  // bit 1 << role
};

}  // namespace score::proto

#include "proto/frames.inc"  // IWYU pragma: export

namespace score::proto {

inline constexpr std::size_t kRoleCount = kRoleNames.size();
static_assert(kRoleCount <= 32, "a role is a bit of FrameRule::allowed_roles");

// The frame that carries a generated message; only messages that open a frame have one.
template <class Message>
constexpr FrameType frame_type() {
  return FrameTypeOf<Message>::value;
}

// nullptr: no such frame. Any 16-bit value may be asked about.
const FrameRule* find_rule(FrameType type);

// Exactly what the table says. The dispatch point asks this with the role the sender has towards
// the job or attempt in question (Owner, WrongNode), before any handler runs.
bool may_send(Role role, FrameType type);

// Whether a peer with this proven role may send this frame at all. Asked while reading: the job
// that the frame is about is known only after reading it, so an OtherUser may open what an Owner
// may send. Handlers must not rely on it.
bool may_open(Role role, FrameType type);

std::string_view name_of(FrameType type);  // "Submit"; "unknown" if there is none
std::string_view name_of(Role role);       // "OTHER_USER"

}  // namespace score::proto
