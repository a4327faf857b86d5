#pragma once
// This header declares the table [licenses] of scored.toml(5). It is pure.

#include "base/config/config.hpp"
#include "base/model/model.hpp"

#include <vector>

namespace score::head {

struct LicenseRules {
  std::vector<base::License> totals;  // sorted by name
  bool release_suspended = false;     // a suspended job gives its licenses back

  friend bool operator==(const LicenseRules&, const LicenseRules&) = default;
};

// Reads the table; problems become errors of the section.
[[nodiscard]] LicenseRules read_licenses(ConfigSection& root);

}  // namespace score::head
