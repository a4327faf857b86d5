#pragma once
// The shape of the control network: a tree over the members of a roster. Every member computes it
// from their number and the fan-out alone. Members are numbered in preorder, so a subtree is one
// range of positions, and nodes with neighbouring numbers, which share racks and jobs, share
// subtrees too.
//
// A member that is silent is bypassed, and no other moves: its children speak to their
// grandparent. So a failure concerns its neighbourhood only, and members that disagree about who is
// silent still agree about the shape.

#include "gang/control/positions.hpp"

#include <optional>
#include <vector>

namespace score::gang {

class Tree {
 public:
  static constexpr std::uint32_t kLeastFanout = 2;
  static constexpr std::uint32_t kDefaultFanout = 16;  // docs/lab/control-tree.md

  // members >= 1: the head and its nodes. A smaller fan-out than kLeastFanout is taken for that.
  Tree(std::uint32_t members, std::uint32_t fanout);

  // The smallest fan-out whose tree is no deeper than with `most`: the least work for the head.
  [[nodiscard]] static std::uint32_t narrowest_fanout(std::uint32_t members, std::uint32_t most);

  [[nodiscard]] std::uint32_t size() const { return members_; }

  // All below: O(depth) or O(what they return); positions must be below size().

  [[nodiscard]] std::optional<Position> parent(Position position) const;  // nullopt: the root's
  // Nearest first; the root last.
  [[nodiscard]] std::vector<Position> ancestors(Position position) const;
  [[nodiscard]] std::vector<Position> children(Position position) const;
  // The children; instead of each that is silent, its children, and so on.
  [[nodiscard]] std::vector<Position> children_past(Position position,
                                                    const Positions& silent) const;
  // The position and all below it.
  [[nodiscard]] PositionRange subtree(Position position) const;

  [[nodiscard]] bool is_below(Position position, Position ancestor) const {
    return position != ancestor && subtree(ancestor).contains(position);
  }

  [[nodiscard]] std::uint32_t depth() const;  // 0: the root alone

 private:
  // The part of `whole`, whose root is its first position, that holds `position` below that root.
  [[nodiscard]] PositionRange part_with(PositionRange whole, Position position) const;

  std::uint32_t members_, fanout_;
};

}  // namespace score::gang
