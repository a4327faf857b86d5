#pragma once
// Draws what a job used over time in letters, for a terminal of any kind.

#include "proto/client.pb.h"

#include <cstddef>
#include <string>
#include <vector>

namespace score::scout {

// Returns a chart of `height` lines in which each value is a column of '#'. The top of the chart is
// `most`; values that are not 0 have at least the lowest line.
[[nodiscard]] std::vector<std::string> chart(const std::vector<double>& values, double most,
                                             std::size_t height);

// Returns charts of the processors and of the memory, at most `columns` wide. Several points share
// a column if there are more; the column shows the largest.
[[nodiscard]] std::string profile_page(const wire::Profile& profile, std::size_t columns);

}  // namespace score::scout
