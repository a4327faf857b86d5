#pragma once
// The target of a request, taken apart. Pure.

#include "base/result.hpp"
#include "monitor/model/viewer_options.hpp"

#include <string>
#include <string_view>

namespace score::monitor {

struct Target {
  std::string path;  // decoded, begins with '/', without "." and ".." and empty parts
  Query query;       // decoded, in order
};

// Origin form only ("/a?b=c"). Refused: broken %-escapes, NUL and other control characters,
// backslashes, "//", "/./", "/../" also when escaped, a name of the query that comes twice.
// Errors: Malformed.
[[nodiscard]] Result<Target> parse_target(std::string_view target);
[[nodiscard]] Result<Query> parse_query(std::string_view text);

}  // namespace score::monitor
