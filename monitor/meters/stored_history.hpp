#pragma once
// These functions write the points of a LoadHistory as text for the head's store, and read them
// after a restart. A line is a point: its step and its begin in seconds, then its sums in the order
// of HistoryPoint, times in nanoseconds. Points of ten seconds are not stored.

#include "monitor/meters/load_history.hpp"

#include <string>
#include <string_view>

namespace score::monitor {

// The text has at most 500 KB.
[[nodiscard]] std::string write_points(const LoadHistory& history);

// Restores the points of the text. Lines that write_points() does not write are left out.
void read_points(LoadHistory& history, std::string_view text);

}  // namespace score::monitor
