// Maps the cores of a job to processors of the host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace score::node {

struct JobCores {
  std::vector<std::uint32_t> processors;  // the ones that this daemon may use, ascending
  std::uint32_t first = 0;                // index of the node's core 0; see NodeConfig
  bool confines = true;                   // the tasks of a job run only on its cores
  std::uint32_t count = 0;                // cores of the node

  // Returns the processors of these cores of the node, in the same order. Numbers beyond the last
  // processor wrap around. An empty result means that the tasks may use all processors.
  [[nodiscard]] std::vector<std::uint32_t> processors_of(
      const std::vector<std::uint32_t>& cores) const;
  // Returns the processors of a job that has no cores of its own: those of all cores of the node,
  // ascending. An empty result means the same as above.
  [[nodiscard]] std::vector<std::uint32_t> processors_of_node() const;
};

// Formats the list as the kernel does: "0,3,8".
[[nodiscard]] std::string cpu_list(const std::vector<std::uint32_t>& processors);

}  // namespace score::node
