// Which processors of the host the cores of a job are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace score::node {

struct JobCores {
  std::vector<std::uint32_t> processors;  // that this daemon may use, rising
  std::uint32_t first = 0;                // index of the node's core 0; see NodeConfig
  bool confines = true;                   // the tasks of a job run on its cores only

  // Of these cores of the node, in their order. Numbers beyond the last processor wrap around.
  // Empty: the tasks may use all processors.
  [[nodiscard]] std::vector<std::uint32_t> processors_of(
      const std::vector<std::uint32_t>& cores) const;
};

// In the kernel's notation: "0,3,8".
[[nodiscard]] std::string cpu_list(const std::vector<std::uint32_t>& processors);

}  // namespace score::node
