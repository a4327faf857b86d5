#pragma once
// WitnessSet has the connections of the nodes as witnesses, and seals the marks that they keep. A
// witness does not have the cluster key, so it can return an older mark, but make none.
//
// The witnesses are those that the configuration names, else all nodes. Every node is asked,
// because the request also shows it which head is in charge; only witnesses have a vote.
// Thread: the loop's.

#include "gang/leadership/leadership.hpp"
#include "proto/transport/connection.hpp"
#include "proto/transport/key_ring.hpp"
#include "scored/head/config/config.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace score::head {

class WitnessSet {
 public:
  using ConnectionPtr = std::shared_ptr<proto::Connection>;

  // Both must outlive the object.
  WitnessSet(const HeadConfig& config, const proto::KeyRing& ring);

  // Completes the settings by the number of witnesses and what follows from it.
  [[nodiscard]] gang::Leadership::Settings settings(gang::Leadership::Settings settings) const;

  // Returns the place of a node. A node that the configuration does not name gets one without a
  // vote: `scadm node add` has added it.
  [[nodiscard]] std::size_t place_of(std::string_view node);

  // Returns the vote of the node at this place; nullopt if it is no witness.
  [[nodiscard]] std::optional<std::size_t> vote_of(std::size_t place) const {
    return votes_[place];
  }

  // Replaces and closes an earlier connection of the node.
  void connected(std::size_t place, ConnectionPtr connection);
  void lost(std::size_t place, const ConnectionPtr& connection);
  // Sends the request to all connected nodes, or only to the witnesses.
  void send(gang::LeaseRequest request, bool only_witnesses) const;

  [[nodiscard]] gang::MarkSeal seal(const gang::LogMark& mark) const;
  // Returns the mark, or an empty one if no head of this cluster has sealed it for these witnesses.
  [[nodiscard]] gang::LogMark checked(const gang::LogMark& mark) const;

  // Returns a digest of the names of nodes and witnesses, because both heads must have the same.
  [[nodiscard]] std::uint64_t digest() const;

 private:
  [[nodiscard]] gang::MarkSeal seal_with(const proto::Key& key, const gang::LogMark& mark) const;

  const HeadConfig& config_;
  const proto::KeyRing& ring_;
  std::vector<std::string> nodes_;                 // those of the configuration come first
  std::vector<std::optional<std::size_t>> votes_;  // indexed by node
  std::vector<ConnectionPtr> connections_;         // indexed by node
  std::uint64_t names_ = 0;                        // digest of the named witnesses
};

}  // namespace score::head
