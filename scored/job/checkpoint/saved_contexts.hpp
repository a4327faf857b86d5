#pragma once
// Finds the contexts of PM that restored tasks have in their memory, so that they get the addresses
// of the new job.

#include "base/os/fd.hpp"

#include <cstdint>
#include <span>
#include <sys/types.h>
#include <vector>

namespace score::shepherd {

// Returns the contexts with this key that the processes have open, each once.
std::vector<base::UniqueFd> contexts_of(std::span<const pid_t> processes, std::uint64_t key);

}  // namespace score::shepherd
