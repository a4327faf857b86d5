#pragma once
// The table [memory] of the configuration says whether the memory of jobs that are held for long is
// written to swap. The head decides by it which jobs are parked, a node how.

#include "base/config/config.hpp"
#include "base/model/model.hpp"
#include "base/time.hpp"
#include "base/units.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace score {

struct MemoryConfig {
  MemoryShare share = MemoryShare::Never;
  // Jobs may have this part of the host's swap, or with a size above 0 at most that.
  std::uint32_t swap_percent = 50;
  Bytes swap{0};
  Bytes least_rate = Bytes(20U << 20U);  // bytes per second; a slower swap is not used
  std::uint32_t cost_percent = 10;       // the most that paging takes of a turn in memory
  Duration turn_max = std::chrono::minutes{10};
  Duration idle_after{0};  // a job idle for so long leaves memory first; 0: like others
  // With less available memory than this part of it, or this size if above 0, a node is short.
  std::uint32_t keep_free_percent = 2;
  Bytes keep_free{0};
  std::vector<Queue> unparked_queues;
  std::vector<std::string> unparked_partitions;

  friend bool operator==(const MemoryConfig&, const MemoryConfig&) = default;

  // Returns what a node with so much memory keeps free.
  [[nodiscard]] Bytes kept_free(Bytes total) const {
    return keep_free > Bytes(0) ? keep_free : Bytes(total.value() / 100 * keep_free_percent);
  }
};

// Reads [memory]; a wrong value becomes an error of the file.
[[nodiscard]] MemoryConfig read_memory_config(ConfigSection& root);

}  // namespace score
