#pragma once
// Converts a PMIx client's request to start programs (PMIx_Spawn). This module is pure; its input
// is hostile.

#include "proto/common.pb.h"

#include <pmix_common.h>

#include <optional>
#include <span>
#include <vector>

namespace score::pmix {

// Returns the requested programs. infos apply to all of them; apps has one entry per program.
// Unknown keys are ignored, as MPI allows. Returns nullopt if there is no program, if one has no
// command or no processes, or if a limit is exceeded.
std::optional<std::vector<wire::Program>> programs_of(std::span<const pmix_info_t> infos,
                                                      std::span<const pmix_app_t> apps);

}  // namespace score::pmix
