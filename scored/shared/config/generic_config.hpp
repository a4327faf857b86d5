#pragma once
// This header declares the tables [gres.NAME] of the configuration: the generic resources of this
// node.

#include "base/config/config.hpp"
#include "base/model/model.hpp"

#include <string>
#include <vector>

namespace score {

struct GenericConfig {
  base::GenericResource resource;
  std::vector<std::string> files;  // of units 0, 1 ...; empty if the units have no device files

  friend bool operator==(const GenericConfig&, const GenericConfig&) = default;
};

// The launcher accepts at most this many device files with one job.
inline constexpr std::size_t kMaxDeviceFiles = 64;

// Reads all tables in order of name; a wrong table becomes an error of the file.
[[nodiscard]] std::vector<GenericConfig> read_generic_config(ConfigSection& root);

}  // namespace score
