#pragma once
// WitnessSet has the connections of the nodes as witnesses, and seals the marks that they keep. A
// witness does not have the cluster key, so it can return an older mark, but make none.
//
// The witnesses are those that the configuration names, else all nodes. Every node is asked,
// because the request also shows it which head is in charge; only witnesses have a vote. If the
// lease is in etcd, no node has one, and etcd is the only witness.
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

  // `config` and `ring` must outlive the object.
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
  void send(const gang::LeaseRequest& request, bool only_witnesses) const;

  // Returns the request with a seal for its mark.
  [[nodiscard]] gang::LeaseRequest sealed(gang::LeaseRequest request) const;

  [[nodiscard]] gang::MarkSeal seal(const gang::LogMark& mark) const;
  // Returns the mark, or an empty one if no head of this cluster has sealed it for these witnesses.
  [[nodiscard]] gang::LogMark checked(const gang::LogMark& mark) const;

  // Returns a digest of the names of nodes and witnesses, or of the keys in etcd, because both
  // heads must have the same.
  [[nodiscard]] std::uint64_t digest() const;

 private:
  [[nodiscard]] gang::MarkSeal seal_with(const proto::Key& key, const gang::LogMark& mark) const;

  const HeadConfig& config_;
  const proto::KeyRing& ring_;
  std::vector<std::string> nodes_;                 // those of the configuration come first
  std::vector<std::optional<std::size_t>> votes_;  // indexed by node
  std::vector<ConnectionPtr> connections_;         // indexed by node
  std::vector<std::string>
      named_;  // witnesses that the configuration names, or those of the lease in etcd
  bool is_in_etcd_ = false;
  std::uint64_t names_ = 0;  // digest of named_
};

}  // namespace score::head
