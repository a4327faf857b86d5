#pragma once
// This tree is the interface between config_toml.cpp, the only source that includes toml++, and
// config.cpp. No other file uses it.

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

// ConfigOther stands for values that the project does not use: dates and times.
struct ConfigOther {};

struct ConfigNode {
  std::variant<ConfigOther, bool, std::int64_t, double, std::string, ConfigArray, ConfigTable>
      value;
  unsigned line = 1;
  mutable bool was_read = false;
};

// Parses TOML into a tree. Errors: Malformed with "name:line:column: ...".
[[nodiscard]] Result<ConfigNode> parse_toml(std::string_view text, const std::string& name);

}  // namespace score::inline base::detail
