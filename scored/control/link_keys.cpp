#include "scored/control/link_keys.hpp"

#include "base/limits.hpp"
#include "proto/frames/errc.hpp"
#include "scored/control/control_message.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>

namespace score::control {

namespace {

// A secret's keys differ by the rank and, as a key has two words, by the word.
LinkKey derive(const LinkKey& secret, std::uint32_t rank) {
  const auto word = [&](std::uint32_t number) {
    const std::array<std::uint32_t, 2> input{rank, number};
    return pm::SipHash(secret).finish(std::as_bytes(std::span(input)));
  };
  return {word(0), word(1)};
}

LinkKey read_key(const std::string& bytes, std::size_t index) {
  LinkKey key;
  std::memcpy(&key, bytes.data() + index * kLinkKeyBytes, kLinkKeyBytes);
  return key;
}

void append_key(std::string& out, const LinkKey& key) {
  out.append(reinterpret_cast<const char*>(&key), kLinkKeyBytes);
}

static_assert(sizeof(LinkKey) == kLinkKeyBytes);

// A header of a type that no datagram has keeps these tags apart from those of datagrams.
TimetableBytes bytes_of(proto::FrameType type, const proto::Digest& timetable) {
  const MessageHeader header{static_cast<std::uint16_t>(type), kMessageVersion};
  TimetableBytes bytes{};
  static_assert(sizeof header + sizeof timetable == sizeof bytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, timetable.data(), timetable.size());
  return bytes;
}

static_assert(!is_control(proto::FrameType::SetTimetable) &&
              !is_control(proto::FrameType::TimetableApplied));

}  // namespace

const LinkKey* LinkKeys::find(std::uint32_t rank) const {
  const auto found =
      std::ranges::lower_bound(links_, rank, {}, [](const auto& l) { return l.first; });
  return found != links_.end() && found->first == rank ? &found->second : nullptr;
}

std::uint64_t LinkKeys::tag_to(std::uint32_t rank, std::span<const std::byte> bytes) const {
  const LinkKey* key = find(rank);
  return key != nullptr ? pm::SipHash(*key).finish(bytes) : 0;
}

std::uint64_t LinkKeys::tag_from(std::uint32_t rank, std::span<const std::byte> bytes) const {
  return has(rank) ? pm::SipHash(derive(own_, rank)).finish(bytes) : 0;
}

wire::ControlKeys LinkKeys::to_wire(std::uint32_t generation) const {
  wire::ControlKeys message;
  message.set_generation(generation);
  append_key(*message.mutable_own(), own_);
  for (const auto& [rank, key] : links_) {
    message.add_ranks(rank);
    append_key(*message.mutable_keys(), key);
  }
  return message;
}

Result<LinkKeys> from_wire(const wire::ControlKeys& message) {
  const auto& ranks = message.ranks();
  const auto count = static_cast<std::size_t>(ranks.size());
  const bool ascends = std::ranges::adjacent_find(ranks, std::greater_equal<>()) == ranks.end();
  if (message.own().size() != kLinkKeyBytes || message.keys().size() != count * kLinkKeyBytes ||
      !ascends || count > base::limits::kMaxNodes + std::size_t{1}) {
    return fail(proto::WireErrc::BadMessage, "ControlKeys: ranks and keys do not match");
  }
  LinkKeys keys(read_key(message.own(), 0));
  for (std::size_t i = 0; i < count; ++i) {
    keys.add(ranks.Get(static_cast<int>(i)), read_key(message.keys(), i));
  }
  return keys;
}

RosterKeys::RosterKeys(const Roster& roster, const LinkKey& secret)
    : roster_(roster),
      secret_(secret),
      positions_(roster),
      tree_(positions_.count(), roster.fanout) {}

LinkKeys RosterKeys::of(std::uint32_t rank) const {
  LinkKeys keys(derive(secret_, rank));
  const auto self = positions_.of_rank(rank);
  if (!self) return keys;
  std::vector<gang::Position> linked = tree_.ancestors(*self);
  std::ranges::reverse(linked);
  const gang::PositionRange subtree = tree_.subtree(*self);
  for (gang::Position p = subtree.begin + 1; p < subtree.end; ++p) linked.push_back(p);
  for (const gang::Position p : linked) {
    const std::uint32_t other = positions_.rank_of(p);
    if (roster_.members[other].signs) keys.add(other, derive(derive(secret_, other), rank));
  }
  return keys;
}

TimetableBytes order_of(const proto::Digest& timetable) {
  return bytes_of(proto::FrameType::SetTimetable, timetable);
}

TimetableBytes receipt_of(const proto::Digest& timetable) {
  return bytes_of(proto::FrameType::TimetableApplied, timetable);
}

}  // namespace score::control
