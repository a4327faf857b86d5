#pragma once
// This function is shared by the size and duration parsers.

#include "base/result.hpp"

#include <cstdint>
#include <string_view>

namespace score::inline base {

// Returns digits[.digits] times `unit` (at most 2^60), rounded down: "1.5" x 60 = 90. Errors:
// Malformed (empty, no digit before or after the point, two points), TooLarge (does not fit 64
// bits).
[[nodiscard]] Result<std::uint64_t> scaled_number(std::string_view number, std::uint64_t unit);

}  // namespace score::inline base
