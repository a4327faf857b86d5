#include "scored/shepherd/process_mapping.hpp"

#include <fmt/core.h>

namespace score::shepherd {

std::string process_mapping(std::span<const std::uint32_t> tasks_on_node) {
  std::string text = "(vector";
  for (std::size_t node = 0; node < tasks_on_node.size();) {
    std::size_t end = node + 1;
    while (end < tasks_on_node.size() && tasks_on_node[end] == tasks_on_node[node]) ++end;
    if (tasks_on_node[node] > 0) {
      text += fmt::format(",({},{},{})", node, end - node, tasks_on_node[node]);
    }
    node = end;
  }
  return text + ")";
}

}  // namespace score::shepherd
