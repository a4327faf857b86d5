#pragma once
// What a PMIx client wants to start (PMIx_Spawn), as programs. Pure; what it reads is hostile.

#include "proto/common.pb.h"

#include <pmix_common.h>

#include <optional>
#include <span>
#include <vector>

namespace score::pmix {

// infos: of all of them; apps: one for each program. Keys that are not known are ignored, as MPI
// allows. Nothing: no programs, or one without a command or processes, or too many of anything.
std::optional<std::vector<wire::Program>> programs_of(std::span<const pmix_info_t> infos,
                                                      std::span<const pmix_app_t> apps);

}  // namespace score::pmix
