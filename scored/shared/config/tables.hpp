#pragma once
// kConfigTables lists all tables of scored.toml(5). Each program reads some of them and skips the
// others, so one file can serve all programs of a host, and an unknown table is still reported.

#include "base/config/config.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <string_view>

namespace score {

inline constexpr std::array<std::string_view, 18> kConfigTables = {
    "head",   "heads",   "node",       "network",    "launcher", "devices",
    "limits", "monitor", "accounts",   "fair_share", "gres",     "pario",
    "hooks",  "notify",  "partitions", "licenses",   "topology", "memory"};

// Marks the tables that this program does not read.
inline void ignore_other_tables(ConfigSection& root, std::initializer_list<std::string_view> own) {
  for (const std::string_view table : kConfigTables) {
    if (std::ranges::find(own, table) == own.end()) root.ignore(table);
  }
}

}  // namespace score
