#pragma once
// Describes as text what the ranks of an idle or deadlocked job wait for.

#include "base/model/model.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace score::gang {

// Returns a text such as "deadlock: no task can send: rank 0 in MPI_Recv from rank 1, tag 7; 3
// more". It shows the lowest kMaxWaitsShown ranks of `waits`. These come from users' memory, so
// names that are not identifiers are left out. `tasks` is the number of tasks of the job that have
// not ended.
[[nodiscard]] std::string deadlock_text(std::vector<base::TaskWait> waits, std::size_t tasks);

inline constexpr std::size_t kMaxWaitsShown = 8;

// Returns a line per rank, the lowest first, such as "rank 0 in MPI_Recv from rank 1, tag 7". There
// are at most kMaxWaitsListed lines, then "3 more".
[[nodiscard]] std::vector<std::string> wait_lines(std::vector<base::TaskWait> waits);

inline constexpr std::size_t kMaxWaitsListed = 32;

}  // namespace score::gang
