#pragma once
// Computes the ranks of a job's tasks. Tasks are numbered by node, and within a node by their
// place. Ranks follow the tasks in blocks, or are dealt out to the nodes in turn.

#include <cstdint>
#include <span>
#include <vector>

namespace score::inline base {

enum class Distribution : std::uint8_t {
  Block,   // node 0 has ranks 0 ... n-1, node 1 the next ones
  Cyclic,  // rank 0 on node 0, rank 1 on node 1, ...; full nodes are skipped
};

// Returns the index of the node for each rank. `tasks_on_node` is indexed by node.
[[nodiscard]] std::vector<std::uint32_t> nodes_of_ranks(
    std::span<const std::uint32_t> tasks_on_node, Distribution distribution);

// Returns the ranks of the node's tasks in ascending order. The result is empty for a node that is
// not part of the job.
[[nodiscard]] std::vector<std::uint32_t> ranks_of_node(std::span<const std::uint32_t> tasks_on_node,
                                                       std::uint32_t node,
                                                       Distribution distribution);

}  // namespace score::inline base
