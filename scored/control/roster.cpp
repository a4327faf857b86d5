#include "scored/control/roster.hpp"

#include "base/limits.hpp"
#include "proto/frames/errc.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace score::control {

namespace {

void append(std::string& out, const pm::PeerAddress& address) {
  out.append(reinterpret_cast<const char*>(address.bytes.data()), kAddressBytes);
}

pm::PeerAddress address_at(std::string_view bytes, std::size_t index) {
  pm::PeerAddress address;
  std::memcpy(address.bytes.data(), bytes.data() + index * kAddressBytes, kAddressBytes);
  return address;
}

bool is_address_or_empty(std::string_view bytes) {
  return bytes.empty() || bytes.size() == kAddressBytes;
}

Error broken(std::string_view why) {
  return fail(proto::WireErrc::BadMessage, "{}", why);
}

}  // namespace

Positions::Positions(const Roster& roster) {
  for (std::uint32_t rank = 0; rank < roster.members.size(); ++rank) {
    if (roster.has(rank)) ranks_.push_back(rank);
  }
}

std::optional<gang::Position> Positions::of_rank(std::uint32_t rank) const {
  const auto found = std::lower_bound(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end() || *found != rank) return std::nullopt;
  return static_cast<gang::Position>(found - ranks_.begin());
}

wire::ControlRoster to_wire(const Roster& roster) {
  wire::ControlRoster message;
  message.set_generation(roster.generation);
  message.set_key(roster.key);
  message.set_fanout(roster.fanout);
  std::string main, meetings;
  for (const MemberAddress& member : roster.members) {
    append(main, member.main);
    append(meetings, member.meetings);
  }
  message.set_addresses(std::move(main));
  message.set_meeting_addresses(std::move(meetings));
  return message;
}

Result<Roster> from_wire(const wire::ControlRoster& message) {
  const std::string& main = message.addresses();
  const std::string& meetings = message.meeting_addresses();
  const std::size_t size = main.size() / kAddressBytes;
  if (main.size() % kAddressBytes != 0 || main.size() != meetings.size() ||
      size > base::limits::kMaxNodes + std::size_t{1}) {
    return broken("ControlRoster: addresses have a wrong length");
  }
  if (size > 0 && message.key() == 0) return broken("ControlRoster: key is 0");
  if (message.fanout() > base::limits::kMaxNodes) return broken("ControlRoster: fanout");
  Roster roster{message.generation(), message.key(), {}};
  if (message.fanout() != 0) roster.fanout = message.fanout();
  roster.members.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    roster.members[i] = {address_at(main, i), address_at(meetings, i), false};
  }
  return roster;
}

Result<MemberAddress> from_wire(const wire::ControlOffer& message) {
  if (!is_address_or_empty(message.address()) || !is_address_or_empty(message.meeting_address())) {
    return broken("ControlOffer: an address has a wrong length");
  }
  MemberAddress address;
  if (!message.address().empty()) address.main = address_at(message.address(), 0);
  if (!message.meeting_address().empty())
    address.meetings = address_at(message.meeting_address(), 0);
  address.signs = message.signs();
  return address;
}

wire::ControlOffer to_wire(const MemberAddress& address) {
  wire::ControlOffer message;
  if (address.is_member()) append(*message.mutable_address(), address.main);
  if (address.meetings != pm::PeerAddress()) {
    append(*message.mutable_meeting_address(), address.meetings);
  }
  message.set_signs(address.signs);
  return message;
}

}  // namespace score::control
