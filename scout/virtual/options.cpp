#include "scout/virtual/options.hpp"

#include <fmt/core.h>

#include <thread>

namespace score::scout {

std::vector<std::string> node_names(std::uint32_t count) {
  const auto digits = std::max<std::size_t>(2, std::to_string(count - 1).size());
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) names.push_back(fmt::format("node{:0{}}", i, digits));
  return names;
}

bool shares_processors(const VirtualOptions& options) {
  return std::uint64_t{options.nodes} * options.cores > std::thread::hardware_concurrency();
}

}  // namespace score::scout
