#include "scored/job/plan/process_mapping.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

namespace score::shepherd {

namespace {

struct Entry {
  std::uint32_t node;
  std::uint32_t nodes;
  std::uint32_t each;

  friend bool operator==(const Entry&, const Entry&) = default;
};

// Returns how many ranks follow each other on the node of the first one.
std::uint32_t run_length(std::span<const std::uint32_t> nodes) {
  const auto other = std::ranges::find_if(nodes, [&](auto node) { return node != nodes[0]; });
  return static_cast<std::uint32_t>(other - nodes.begin());
}

std::vector<Entry> entries_of(std::span<const std::uint32_t> nodes) {
  std::vector<Entry> entries;
  while (!nodes.empty()) {
    const std::uint32_t each = run_length(nodes);
    Entry* const last = entries.empty() ? nullptr : &entries.back();
    const bool goes_on =
        last != nullptr && last->each == each && nodes[0] == last->node + last->nodes;
    if (goes_on) ++last->nodes;
    if (!goes_on) entries.push_back({nodes[0], 1, each});
    nodes = nodes.subspan(each);
  }
  return entries;
}

}  // namespace

std::string process_mapping(std::span<const std::uint32_t> nodes_of_ranks) {
  auto entries = entries_of(nodes_of_ranks);
  const auto is_first = [&](const Entry& entry) { return entry == entries[0]; };
  if (std::ranges::all_of(entries, is_first) && !entries.empty()) {
    entries.erase(entries.begin() + 1, entries.end());
  }
  std::string text = "(vector";
  for (const auto& entry : entries) {
    text += fmt::format(",({},{},{})", entry.node, entry.nodes, entry.each);
  }
  return text + ")";
}

}  // namespace score::shepherd
