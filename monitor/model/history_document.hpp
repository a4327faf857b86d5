#pragma once
// Writes the history of the cluster as a document or as comma-separated values, by the same columns
// (docs/reference/stream.md). It is pure.

#include "base/result.hpp"
#include "monitor/meters/load_history.hpp"

#include <string>

namespace score::monitor {

struct HistoryRequest {
  Duration step{LoadHistory::kPeriod};
  bool as_csv = false;
};

// Errors: NotFound (there is no such step).
[[nodiscard]] Result<std::string> write_history(const LoadHistory& history,
                                                const HistoryRequest& request);

}  // namespace score::monitor
