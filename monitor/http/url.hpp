#pragma once
// Parses the target of a request. It is pure.

#include "base/result.hpp"
#include "monitor/model/viewer_options.hpp"

#include <string>
#include <string_view>

namespace score::monitor {

struct RequestTarget {
  std::string path;  // decoded, begins with '/', without "." and ".." and empty parts
  Query query;       // decoded, in order
};

// Parses the origin form only ("/a?b=c"). It rejects broken %-escapes, NUL and other control
// characters, backslashes, "//", "/./" and "/../" (even if escaped), and a repeated name in the
// query. Errors: Malformed.
[[nodiscard]] Result<RequestTarget> parse_target(std::string_view target);
[[nodiscard]] Result<Query> parse_query(std::string_view text);

}  // namespace score::monitor
