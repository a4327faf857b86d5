#pragma once
// Simulates two jobs on all nodes that take turns in barrier mode. They meet by dissemination on a
// datagram network that loses, repeats and reorders.

#include "gang/control/dissemination.hpp"
#include "tests/sim/control_world.hpp"

namespace score::sim {

struct SwitchingFigures {
  std::uint64_t boundaries = 0;   // of the whole cluster
  std::uint64_t lost_slices = 0;  // a node whose job did not run in its slice
  std::uint64_t wrong_switches =
      0;  // a job started while a node still ran the other job, or had not stopped it
  std::uint64_t datagrams = 0;
  Duration median{0}, worst{0};  // from the boundary until the job of the last node started
};

// Runs for this simulated time. options.loss and similar options apply to the datagrams of the
// meetings.
[[nodiscard]] SwitchingFigures measure_switching(const ControlOptions& options, Duration time);

int run_switching(const ControlOptions& options);

}  // namespace score::sim
