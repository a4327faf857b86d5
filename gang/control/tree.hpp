#pragma once
// The control network is a tree over the members of a roster. Every member computes it from the
// number of members and the fan-out alone. Members are numbered in preorder, so a subtree is one
// range of positions. Nodes with neighbouring numbers, which share racks and jobs, therefore share
// subtrees.
//
// A silent member is bypassed, and no other member moves: its children speak to their grandparent.
// So a failure concerns only its neighbourhood, and members that disagree about silent members
// still agree about the shape.

#include "gang/control/positions.hpp"

#include <optional>
#include <vector>

namespace score::gang {

class Tree {
 public:
  static constexpr std::uint32_t kLeastFanout = 2;
  static constexpr std::uint32_t kDefaultFanout = 16;  // docs/lab/control-tree.md

  // `members` counts the head and its nodes, >= 1. A fan-out below kLeastFanout is raised to it.
  Tree(std::uint32_t members, std::uint32_t fanout);

  // Returns the smallest fan-out whose tree is no deeper than with `most`. It means the least work
  // for the head.
  [[nodiscard]] static std::uint32_t narrowest_fanout(std::uint32_t members, std::uint32_t most);

  [[nodiscard]] std::uint32_t size() const { return members_; }

  // Each call below takes O(depth) or O(size of the result). Positions must be below size().

  [[nodiscard]] std::optional<Position> parent(Position position) const;  // nullopt for the root
  // Returns the ancestors, the nearest first and the root last.
  [[nodiscard]] std::vector<Position> ancestors(Position position) const;
  [[nodiscard]] std::vector<Position> children(Position position) const;
  // Returns the children. Each silent child is replaced by its own children, recursively.
  [[nodiscard]] std::vector<Position> children_past(Position position,
                                                    const Positions& silent) const;
  // Returns the range of the position and of all members below it.
  [[nodiscard]] PositionRange subtree(Position position) const;

  [[nodiscard]] bool is_below(Position position, Position ancestor) const {
    return position != ancestor && subtree(ancestor).contains(position);
  }

  [[nodiscard]] std::uint32_t depth() const;  // 0 for the root alone

 private:
  // Returns the part of `whole` that holds `position`. The first position of `whole` is its root,
  // and `position` lies below it.
  [[nodiscard]] PositionRange part_with(PositionRange whole, Position position) const;

  std::uint32_t members_, fanout_;
};

}  // namespace score::gang
