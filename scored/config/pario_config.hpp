#pragma once
// The table [pario] of the configuration: what the node offers for jobs' striped volumes.

#include "base/config/config.hpp"
#include "base/units.hpp"

#include <string>

namespace score {

struct ParioConfig {
  std::string path;   // directory; empty: nothing is offered
  Bytes capacity{0};  // of all volumes together
};

// A wrong value is refused in the file.
[[nodiscard]] ParioConfig read_pario_config(ConfigSection& root);

}  // namespace score
