#include "scored/job/plan/process_mapping.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace score::shepherd {

namespace {

struct MappingBlock {
  std::uint32_t node;
  std::uint32_t nodes;
  std::uint32_t each;

  friend bool operator==(const MappingBlock&, const MappingBlock&) = default;
};

// Returns how many ranks follow each other on the node of the first one.
std::uint32_t run_length(std::span<const std::uint32_t> nodes) {
  const auto other = std::ranges::find_if(nodes, [&](auto node) { return node != nodes[0]; });
  return static_cast<std::uint32_t>(other - nodes.begin());
}

std::vector<MappingBlock> blocks_of(std::span<const std::uint32_t> nodes) {
  std::vector<MappingBlock> blocks;
  while (!nodes.empty()) {
    const std::uint32_t each = run_length(nodes);
    MappingBlock* const last = blocks.empty() ? nullptr : &blocks.back();
    const bool goes_on =
        last != nullptr && last->each == each && nodes[0] == last->node + last->nodes;
    if (goes_on) ++last->nodes;
    if (!goes_on) blocks.push_back({nodes[0], 1, each});
    nodes = nodes.subspan(each);
  }
  return blocks;
}

}  // namespace

std::string process_mapping(std::span<const std::uint32_t> nodes_of_ranks) {
  auto blocks = blocks_of(nodes_of_ranks);
  const auto is_first = [&](const MappingBlock& block) { return block == blocks[0]; };
  if (std::ranges::all_of(blocks, is_first) && !blocks.empty()) {
    blocks.erase(blocks.begin() + 1, blocks.end());
  }
  std::string text = "(vector";
  for (const auto& block : blocks) {
    text += fmt::format(",({},{},{})", block.node, block.nodes, block.each);
  }
  return text + ")";
}

}  // namespace score::shepherd
