#include "scored/control/control_message.hpp"

#include "scored/control/roster.hpp"

#include <algorithm>
#include <cstring>

namespace score::control {

static_assert(std::ranges::all_of(proto::kFrameRules, [](const proto::FrameRule& rule) {
  return !is_control(rule.type) || rule.max_bytes <= kMostMessageBytes;
}));

MessageFault read_message(std::span<const std::byte> datagram, std::uint32_t source,
                          Message& message) {
  MessageHeader header;
  if (datagram.size() < sizeof header) return MessageFault::Malformed;
  std::memcpy(&header, datagram.data(), sizeof header);
  const auto type = static_cast<proto::FrameType>(header.type);
  const proto::FrameRule* rule = is_control(type) ? proto::find_rule(type) : nullptr;
  if (rule == nullptr || header.version != kMessageVersion) return MessageFault::Unknown;
  const auto payload = datagram.subspan(sizeof header);
  if (payload.size() > rule->max_bytes) return MessageFault::Malformed;
  const proto::Role role = source == kHeadRank ? proto::Role::Head : proto::Role::Node;
  if (!proto::may_send(role, type)) return MessageFault::NotAllowed;
  message = {type, {reinterpret_cast<const char*>(payload.data()), payload.size()}};
  return MessageFault::None;
}

}  // namespace score::control
