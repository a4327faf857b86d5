#pragma once
// The table [pario] of the configuration describes what the node offers for jobs' striped volumes.

#include "base/config/config.hpp"
#include "base/units.hpp"

#include <string>

namespace score {

struct ParioConfig {
  std::string path;   // directory; empty if the node offers none
  Bytes capacity{0};  // of all volumes together
};

// Reads [pario]; a wrong value becomes an error of the file.
[[nodiscard]] ParioConfig read_pario_config(ConfigSection& root);

}  // namespace score
