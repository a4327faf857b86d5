#pragma once
// Lists the members of the daemons' PM network and its key. Rank 0 is the head, and rank k + 1 is
// the head's node k. The head makes a roster and sends it to every node over TLS.

#include "base/ids.hpp"
#include "base/result.hpp"
#include "gang/control/tree.hpp"
#include "pmlib/core/segment.hpp"
#include "proto/node.pb.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace score::control {

constexpr std::size_t kAddressBytes = sizeof(pm::PeerAddress::bytes);

constexpr std::uint32_t kHeadRank = 0;

constexpr std::uint32_t rank_of_node(std::uint32_t node) {
  return node + 1;
}

// `rank` must not be the head's.
constexpr base::NodeId node_of_rank(std::uint32_t rank) {
  return base::NodeId(rank - 1);
}

// Holds the addresses of a member: IPv4 and port. All 0: the rank is not a member.
struct MemberAddress {
  pm::PeerAddress main;      // the daemon's main loop
  pm::PeerAddress meetings;  // the switcher's thread; 0: it has no context
  bool signs = false;        // it has link_keys.hpp; only the head knows this of others

  [[nodiscard]] bool is_member() const { return main != pm::PeerAddress(); }

  friend bool operator==(const MemberAddress&, const MemberAddress&) = default;
};

struct Roster {
  std::uint32_t generation = 0;
  std::uint64_t key = 0;               // for the frames' tags; new with each generation
  std::vector<MemberAddress> members;  // [rank]; empty: no one is in the network
  std::uint32_t fanout = gang::Tree::kDefaultFanout;  // of the tree, the same for all

  [[nodiscard]] bool has(std::uint32_t rank) const {
    return rank < members.size() && members[rank].is_member();
  }

  friend bool operator==(const Roster&, const Roster&) = default;
};

// Numbers the members of a roster by their position in the tree.
class Positions {
 public:
  explicit Positions(const Roster& roster);

  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(ranks_.size()); }

  // `position` must be below count().
  [[nodiscard]] std::uint32_t rank_of(gang::Position position) const { return ranks_[position]; }

  [[nodiscard]] std::optional<gang::Position> of_rank(std::uint32_t rank) const;

 private:
  std::vector<std::uint32_t> ranks_;  // ascending
};

[[nodiscard]] wire::ControlRoster to_wire(const Roster& roster);
// Fails with BadMessage if sizes do not match each other, or the key is 0.
[[nodiscard]] Result<Roster> from_wire(const wire::ControlRoster& message);

// Reads the offer of a node. The IPv4 address in `bytes` is kAddressBytes long, or empty if it is
// not offered.
[[nodiscard]] Result<MemberAddress> from_wire(const wire::ControlOffer& message);
[[nodiscard]] wire::ControlOffer to_wire(const MemberAddress& address);

}  // namespace score::control
