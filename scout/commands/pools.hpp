#pragma once
// Prints partitions and licenses. Clusters without them have none in the texts.

#include "proto/client.pb.h"

#include <string>

namespace score::scout {

// Returns lines for score info.
[[nodiscard]] std::string pools_lines(const wire::Info& info);

}  // namespace score::scout
