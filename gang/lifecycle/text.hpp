#pragma once
// Formats values for reasons that users read.

#include "base/time.hpp"

#include <fmt/format.h>

#include <string>

namespace score::gang {

// Returns a text such as "10.0s".
inline std::string seconds(base::Duration d) {
  return fmt::format("{:.1f}s", std::chrono::duration<double>(d).count());
}

}  // namespace score::gang
