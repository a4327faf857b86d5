#pragma once
// Between config_toml.cpp, the one source that includes toml++, and config.cpp. Not for others.

#include "base/result.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace score::inline base::detail {

struct ConfigNode;
using ConfigTable = std::map<std::string, ConfigNode, std::less<>>;
using ConfigArray = std::vector<ConfigNode>;

// What the project has no use for: dates and times.
struct ConfigOther {};

struct ConfigNode {
  std::variant<ConfigOther, bool, std::int64_t, double, std::string, ConfigArray, ConfigTable>
      value;
  unsigned line = 1;
  mutable bool was_read = false;
};

// Errors: Malformed with "name:line:column: ...".
[[nodiscard]] Result<ConfigNode> parse_toml(std::string_view text, const std::string& name);

}  // namespace score::inline base::detail
