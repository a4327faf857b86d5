#pragma once
// Which ranks the tasks of a job have. Tasks are numbered by node, and within each by their place;
// ranks follow them in blocks, or are dealt out to the nodes in turn.

#include <cstdint>
#include <span>
#include <vector>

namespace score::inline base {

enum class Distribution : std::uint8_t {
  Block,   // node 0 has ranks 0 ... n-1, node 1 the next ones
  Cyclic,  // rank 0 on node 0, rank 1 on node 1, ...; a node that is full is passed over
};

// [rank]: the index of its node. tasks_on_node: [node index].
[[nodiscard]] std::vector<std::uint32_t> nodes_of_ranks(
    std::span<const std::uint32_t> tasks_on_node, Distribution distribution);

// [task]: the rank it has, ascending. Empty for a node that is not among them.
[[nodiscard]] std::vector<std::uint32_t> ranks_of_node(std::span<const std::uint32_t> tasks_on_node,
                                                       std::uint32_t node,
                                                       Distribution distribution);

}  // namespace score::inline base
