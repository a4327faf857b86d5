#include "base/model/distribution.hpp"

#include <algorithm>

namespace score::inline base {

std::vector<std::uint32_t> nodes_of_ranks(std::span<const std::uint32_t> tasks_on_node,
                                          Distribution distribution) {
  std::vector<std::uint32_t> nodes;
  if (distribution == Distribution::Block) {
    for (std::uint32_t node = 0; node < tasks_on_node.size(); ++node) {
      nodes.insert(nodes.end(), tasks_on_node[node], node);
    }
    return nodes;
  }
  const std::uint32_t rounds = tasks_on_node.empty() ? 0 : std::ranges::max(tasks_on_node);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::uint32_t node = 0; node < tasks_on_node.size(); ++node) {
      if (tasks_on_node[node] > round) nodes.push_back(node);
    }
  }
  return nodes;
}

std::vector<std::uint32_t> ranks_of_node(std::span<const std::uint32_t> tasks_on_node,
                                         std::uint32_t node, Distribution distribution) {
  const auto nodes = nodes_of_ranks(tasks_on_node, distribution);
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < nodes.size(); ++rank) {
    if (nodes[rank] == node) ranks.push_back(rank);
  }
  return ranks;
}

}  // namespace score::inline base
