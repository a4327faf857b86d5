#pragma once
// The tables [gres.NAME] of the configuration: generic resources of this node.

#include "base/config/config.hpp"
#include "base/model/model.hpp"

#include <string>
#include <vector>

namespace score {

struct GenericConfig {
  base::GenericResource resource;
  std::vector<std::string> files;  // of unit 0, 1 ...; empty: units without device files

  friend bool operator==(const GenericConfig&, const GenericConfig&) = default;
};

// Of all nodes of a cluster: what the launcher takes with one job.
inline constexpr std::size_t kMaxDeviceFiles = 64;

// In order of name. A wrong table is refused in the file.
[[nodiscard]] std::vector<GenericConfig> read_generic_config(ConfigSection& root);

}  // namespace score
