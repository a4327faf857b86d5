#include "scored/control/control_message.hpp"

#include "proto/control.pb.h"
#include "scored/control/roster.hpp"

#include <algorithm>
#include <cstring>

namespace score::control {

static_assert(std::ranges::all_of(proto::kFrameRules, [](const proto::FrameRule& rule) {
  return !is_control(rule.type) || rule.max_bytes <= kMostMessageBytes;
}));

namespace {

// All messages have the same field.
constexpr int kTagField = wire::ControlBeat::kTagFieldNumber;
static_assert(int{wire::ControlAnswer::kTagFieldNumber} == kTagField);
static_assert(int{wire::ControlTimetables::kTagFieldNumber} == kTagField);
static_assert(int{wire::ControlTimetablesTaken::kTagFieldNumber} == kTagField);

constexpr std::byte kTagKey{kTagField << 3 | 1};  // a fixed64

}  // namespace

void write_tag(std::uint64_t tag, std::span<std::byte> end) {
  end[0] = kTagKey;
  std::memcpy(end.data() + 1, &tag, sizeof tag);
}

std::optional<std::uint64_t> read_tag(std::span<const std::byte> datagram) {
  if (datagram.size() < sizeof(MessageHeader) + kTagBytes) return std::nullopt;
  const auto end = datagram.last(kTagBytes);
  if (end[0] != kTagKey) return std::nullopt;
  std::uint64_t tag = 0;
  std::memcpy(&tag, end.data() + 1, sizeof tag);
  return tag;
}

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
