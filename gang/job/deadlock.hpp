#pragma once
// What the ranks of an idle or deadlocked job wait for, in words. Pure.

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

// A line per rank, lowest first, such as "rank 0 in MPI_Recv from rank 1, tag 7": at most
// kMaxWaitsListed, then "3 more".
[[nodiscard]] std::vector<std::string> wait_lines(std::vector<base::TaskWait> waits);

inline constexpr std::size_t kMaxWaitsListed = 32;

}  // namespace score::gang
