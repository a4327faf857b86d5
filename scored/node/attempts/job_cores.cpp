#include "scored/node/attempts/job_cores.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

namespace score::node {

std::vector<std::uint32_t> JobCores::processors_of(const std::vector<std::uint32_t>& cores) const {
  std::vector<std::uint32_t> found;
  if (!confines || processors.empty()) return found;
  found.reserve(cores.size());
  for (const std::uint32_t core : cores) {
    const auto index = (std::uint64_t{first} + core) % processors.size();
    found.push_back(processors[static_cast<std::size_t>(index)]);
  }
  return found;
}

std::vector<std::uint32_t> JobCores::processors_of_node() const {
  const std::size_t different = std::min<std::size_t>(count, processors.size());
  std::vector<std::uint32_t> cores(different);
  std::iota(cores.begin(), cores.end(), 0U);
  std::vector<std::uint32_t> found = processors_of(cores);
  std::ranges::sort(found);
  return found;
}

std::string cpu_list(const std::vector<std::uint32_t>& processors) {
  return fmt::format("{}", fmt::join(processors, ","));
}

}  // namespace score::node
