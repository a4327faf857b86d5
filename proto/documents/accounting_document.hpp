// Writes records of ended jobs as JSON and as comma-separated values; scout/JSON.md describes the
// fields.
#pragma once

#include "base/text/json_writer.hpp"
#include "proto/client.pb.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::proto {

[[nodiscard]] std::int64_t elapsed_ns(const wire::AccountingRow& row);
// Returns the scheduled time as a fraction of the elapsed time, 0 to 1.
[[nodiscard]] double share_of(const wire::AccountingRow& row);
// Returns cores x scheduled time.
[[nodiscard]] double core_hours_of(const wire::AccountingRow& row);
[[nodiscard]] bool is_out_of_memory(const wire::AccountingRow& row);

// Writes all fields of the record as one object.
void write_record(JsonWriter& json, const wire::AccountingRow& row);

// Returns a line of these cells, with quotes where RFC 4180 requires them.
[[nodiscard]] std::string csv_line(const std::vector<std::string>& cells);
// Names the columns of csv_record(), which are called as the fields of the document.
[[nodiscard]] std::string csv_header();
[[nodiscard]] std::string csv_record(const wire::AccountingRow& row);

}  // namespace score::proto
