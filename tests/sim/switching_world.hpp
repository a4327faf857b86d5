#pragma once
// Two jobs on all nodes that take turns in barrier mode, meeting by dissemination on a datagram
// network that loses, repeats and reorders.

#include "gang/control/dissemination.hpp"
#include "tests/sim/control_world.hpp"

namespace score::sim {

struct SwitchingFigures {
  std::uint64_t boundaries = 0;   // of the cluster
  std::uint64_t lost_slices = 0;  // a node whose job did not run in its slice
  std::uint64_t wrong_switches =
      0;  // a job went on while a node still ran, or had not stopped, the other
  std::uint64_t datagrams = 0;
  Duration median{0}, worst{0};  // from the boundary until the last node's job went on
};

// Runs for this simulated time. options.loss and the like are those of the meetings' datagrams.
[[nodiscard]] SwitchingFigures measure_switching(const ControlOptions& options, Duration time);

int run_switching(const ControlOptions& options);

}  // namespace score::sim
