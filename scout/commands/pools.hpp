#pragma once
// Prints partitions and licenses. Clusters without them have none in the texts.

#include "base/text/json_writer.hpp"
#include "proto/client.pb.h"

#include <string>

namespace score::scout {

// Adds "partitions" and "licenses" to an object; nothing where the cluster has none.
void write_pools(JsonWriter& json, const wire::Info& info);

// Returns lines for score info.
[[nodiscard]] std::string pools_lines(const wire::Info& info);

}  // namespace score::scout
