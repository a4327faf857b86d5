// Finds out how much of the host's swap jobs may have.
#pragma once

#include "base/units.hpp"
#include "scored/shared/config/memory_config.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace score::node {

struct SwapFile {
  std::string path;
  Bytes size{0};
  Bytes used{0};
};

// Parses the text of /proc/swaps. Lines that it does not understand are left out.
std::vector<SwapFile> parse_swaps(std::string_view text);

struct JobSwap {
  Bytes most{0};         // for the memory of all parked jobs together; 0: none are parked
  std::string why_none;  // one line for the log; empty: there is some
};

// Finds the swap that jobs may have by the configuration. Swap on a network file system is not
// used: memory is written there to make room, so the network would have to work without any.
JobSwap find_job_swap(const MemoryConfig& config);

// Returns JobSwap::most, and logs why there is none.
Bytes offered_swap(const MemoryConfig& config);

// Returns a figure of /proc/meminfo, such as "SwapFree"; 0 if it cannot be read.
Bytes memory_figure(std::string_view name);

// Returns what may be written now: the part of `most` that is not `used` by parked jobs, and never
// more than is free.
Bytes free_job_swap(Bytes most, Bytes used);

}  // namespace score::node
