#pragma once
// Binds the datagrams of the control network to their sender and their receiver. All members share
// the key of the roster, so it proves only that a sender is a member. In addition each member has a
// secret that only the head and itself know. The key of datagrams from one member to another
// derives from the receiver's secret and the sender's rank: the receiver derives it, and the head
// gives it to the sender. Only members above and below one another in the tree exchange datagrams
// and get keys; the head is above all.
//
// A timetable has two further tags, which pass the members on the way: the head's for its receiver,
// and the receiver's proof for the head that it has the timetable.

#include "base/result.hpp"
#include "pmlib/wire/siphash.hpp"
#include "proto/node.pb.h"
#include "proto/transport/key.hpp"
#include "scored/control/roster.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace score::control {

using LinkKey = pm::SipKey;

constexpr std::size_t kLinkKeyBytes = 16;

// LinkKeys has the keys of one member of one roster.
class LinkKeys {
 public:
  LinkKeys() = default;  // of a member of an older head: there are none

  explicit LinkKeys(const LinkKey& own) : own_(own) {}

  // Adds the key of datagrams to this rank. Ranks must be added in ascending order.
  void add(std::uint32_t rank, const LinkKey& key) { links_.emplace_back(rank, key); }

  // Returns true if datagrams to and from this rank have tags.
  [[nodiscard]] bool has(std::uint32_t rank) const { return find(rank) != nullptr; }

  // Each returns the tag of the bytes from here to this rank, or from it to here; 0 without has().
  [[nodiscard]] std::uint64_t tag_to(std::uint32_t rank, std::span<const std::byte> bytes) const;
  [[nodiscard]] std::uint64_t tag_from(std::uint32_t rank, std::span<const std::byte> bytes) const;

  [[nodiscard]] wire::ControlKeys to_wire(std::uint32_t generation) const;

 private:
  [[nodiscard]] const LinkKey* find(std::uint32_t rank) const;

  LinkKey own_;
  std::vector<std::pair<std::uint32_t, LinkKey>> links_;  // ascending
};

// Errors: BadMessage if sizes do not match or the ranks do not ascend.
[[nodiscard]] Result<LinkKeys> from_wire(const wire::ControlKeys& message);

// Makes the keys of a roster's members. Only the head has its secret.
class RosterKeys {
 public:
  // `roster` must outlive it.
  RosterKeys(const Roster& roster, const LinkKey& secret);

  [[nodiscard]] LinkKeys of(std::uint32_t rank) const;

 private:
  const Roster& roster_;
  LinkKey secret_;
  Positions positions_;
  gang::Tree tree_;
};

// Each returns the bytes of which the tag is made: by the head for the receiver of the timetable,
// and by the receiver for the head.
using TimetableBytes = std::array<std::byte, 4 + sizeof(proto::Digest)>;
[[nodiscard]] TimetableBytes order_of(const proto::Digest& timetable);
[[nodiscard]] TimetableBytes receipt_of(const proto::Digest& timetable);

}  // namespace score::control
