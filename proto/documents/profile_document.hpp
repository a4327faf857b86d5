// Writes what a job used over time as JSON and as comma-separated values; scout/JSON.md describes
// the fields.
#pragma once

#include "base/text/json_writer.hpp"
#include "proto/client.pb.h"

#include <cstdint>
#include <string>

namespace score::proto {

// Returns the number of processors that the job kept busy in the step, on average.
[[nodiscard]] double processors_in(const wire::Profile& profile, const wire::ProfilePoint& point);

void write_profile(JsonWriter& json, std::uint64_t job, const wire::Profile& profile);

// The lines of all points, below the names of the columns.
[[nodiscard]] std::string profile_csv(const wire::Profile& profile);

}  // namespace score::proto
