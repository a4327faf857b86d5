#pragma once
// Topology is the tree of switches that connect the nodes. Jobs are placed within as few leaf
// switches as possible. The class is pure.

#include "base/result.hpp"
#include "gang/matrix/shape.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace score::gang {

// A leaf switch has nodes, the others have switches below them.
struct Switch {
  std::string name;
  std::vector<std::string> nodes;
  std::vector<std::string> switches;

  friend bool operator==(const Switch&, const Switch&) = default;
};

class Topology {
 public:
  // Leaf is the number of a leaf switch. Nodes of no switch have one number together.
  using Leaf = std::uint32_t;

  // Without switches every node is as near as any other.
  Topology() = default;
  // Errors, one line for the administrator: a switch that does not exist, is its own ancestor, or
  // has neither nodes nor switches, or both; a node or a switch that two switches have.
  static base::Result<Topology> make(const std::vector<Switch>& switches);

  [[nodiscard]] bool empty() const { return names_.empty(); }

  [[nodiscard]] Leaf leaf_of(const std::string& node) const;

  // Returns the name of a leaf switch; empty for nodes of no switch.
  [[nodiscard]] std::string name_of(Leaf leaf) const {
    return leaf < names_.size() ? names_[leaf] : std::string();
  }

  // Works like gang::choose(), and takes as many nodes, but within the smallest switch that has
  // room and there within as few leaf switches as possible. Of several switches it takes the one
  // with the least room, then with the least load. `leaves` has the leaf of each node [node].
  [[nodiscard]] std::optional<Choice> choose(const Shape& shape, std::span<const Leaf> leaves,
                                             std::vector<Candidate> candidates) const;

 private:
  // The leaves below a switch; they are numbered from left to right.
  struct Span {
    Leaf first = 0;
    Leaf last = 0;

    [[nodiscard]] Leaf size() const { return last - first; }
  };

  class Builder;

  std::vector<std::string> names_;  // [leaf]
  std::unordered_map<std::string, Leaf> leaf_of_;
  std::vector<Span> spans_;  // of all switches, the smallest ones first; the last one is everything
};

// Counts the leaf switches of these nodes.
[[nodiscard]] std::size_t count_leaves(std::span<const Topology::Leaf> leaves,
                                       std::span<const NodeIndex> nodes);

}  // namespace score::gang
