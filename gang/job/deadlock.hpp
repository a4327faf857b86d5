#pragma once
// A deadlock in words: which ranks wait for which message. Pure.

#include "base/model/model.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace score::gang {

// Such as "deadlock: no task can send: rank 0 in MPI_Recv from rank 1, tag 7; 3 more". The lowest
// kMaxWaitsShown ranks of `waits`, which come from users' memory: names that are no identifiers are
// left out. tasks: those of the job that have not ended.
[[nodiscard]] std::string deadlock_text(std::vector<base::TaskWait> waits, std::size_t tasks);

inline constexpr std::size_t kMaxWaitsShown = 8;

}  // namespace score::gang
