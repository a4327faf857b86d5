// This is the frame table: number, permitted senders and size of each frame. All of it is generated
// from the (frame) options of the .proto files. proto/permissions.md is the same table for readers,
// and a test keeps the two equal.
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

// Returns the frame type of a generated message. Only messages that open a frame have one.
template <class Message>
constexpr FrameType frame_type() {
  return FrameTypeOf<Message>::value;
}

// Returns nullptr if there is no such frame. The function accepts any 16-bit value.
const FrameRule* find_rule(FrameType type);

// Returns exactly what the table says. The dispatcher calls it before any handler runs, with the
// sender's role towards the job or attempt in question (Owner, WrongNode).
bool may_send(Role role, FrameType type);

// Returns true if a peer with this proven role may send this frame at all. It is called while
// reading, when the job of the frame is not yet known; so an OtherUser may open every frame that an
// Owner may send. Handlers must not rely on it.
bool may_open(Role role, FrameType type);

std::string_view name_of(FrameType type);  // "Submit"; "unknown" if there is none
std::string_view name_of(Role role);       // "OTHER_USER"

}  // namespace score::proto
