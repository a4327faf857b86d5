#pragma once
// This header declares switches: the tables [topology.NAME] of scored.toml(5). It is pure.

#include "base/config/config.hpp"
#include "gang/state/topology.hpp"

#include <string>
#include <vector>

namespace score::head {

// Reads the tables; problems become errors of their sections. `nodes` are those of the cluster.
[[nodiscard]] std::vector<gang::Switch> read_topology(ConfigSection& root,
                                                      const std::vector<std::string>& nodes);

}  // namespace score::head
