#pragma once
// Prints what a job has used.

#include "base/model/usage.hpp"
#include "proto/documents/words.hpp"

#include <string>
#include <vector>

namespace score::scout {

using proto::usage_in;

// Returns the lines of a job's page: "0:00:03 of processor time (user 0:00:02, system 0:00:01)" ...
[[nodiscard]] std::vector<std::string> usage_lines(const base::Usage& usage);

// Returns "412M", as memory and data are shown in tables.
[[nodiscard]] std::string short_bytes(Bytes bytes);

}  // namespace score::scout
