#include "scout/virtual/options.hpp"

#include <fmt/core.h>

namespace score::scout {

std::vector<std::string> node_names(std::uint32_t count) {
  const auto digits = std::max<std::size_t>(2, std::to_string(count - 1).size());
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) names.push_back(fmt::format("node{:0{}}", i, digits));
  return names;
}

}  // namespace score::scout
