#pragma once
// Parses JSON from outside: one flat object with the few kinds of values that requests have. It is
// pure.

#include "base/result.hpp"

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace score::monitor {

struct JsonNull {
  friend bool operator==(JsonNull, JsonNull) = default;
};

using JsonValue = std::variant<JsonNull, bool, double, std::string, std::vector<std::string>>;
using JsonObject = std::map<std::string, JsonValue, std::less<>>;

inline constexpr std::size_t kMaxJsonMembers = 32;
// JSON numbers are exact up to this whole number, 2^53.
inline constexpr double kMaxExactNumber = 9'007'199'254'740'992.0;

// Parses an object whose values are texts, numbers, true, false, null, or lists of texts, without
// deeper nesting. A repeated name is an error. Errors: Malformed with the fault.
[[nodiscard]] Result<JsonObject> parse_object(std::string_view text);

}  // namespace score::monitor
