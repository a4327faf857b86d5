#pragma once
// Measures the figures of the control network that have bounds, in one run of a ControlWorld.

#include "tests/sim/control_world.hpp"

namespace score::sim {

struct ControlFigures {
  std::uint32_t depth = 0;
  Duration all_known{0};     // from the roster until the head knows of every node
  double head_messages = 0;  // per second, both ways, idle cluster
  double head_tls = 0;       // heartbeats over TLS per second
  std::uint64_t false_suspicions = 0, false_deaths = 0;
  Duration timetable_median{0}, timetable_worst{0};  // at the last node
  Duration confirmed_worst{0};
  std::size_t timetable_missing = 0;  // nodes that TLS served, in all publications
  std::size_t timetable_sent = 0;     // by the head, the most per publication
  std::size_t orphans = 0;            // members below the inner node that crashed
  Duration served_again{0};           // the last of them, from the crash
  Duration asked_in_vain{0};          // from its first beat without an answer
  Duration crash_suspected{0};        // by the head, from the crash
  Duration leaf_suspected{0};
  std::size_t others_suspected = 0;
  ControlWorld::Clocks clocks;
  Duration known_after_restart{0};  // after a restart of the head
};

[[nodiscard]] ControlFigures measure_control(const ControlOptions& options);

// Prints the figures with the options; this is `scsim_cluster --control`.
int run_control(int argc, char** argv);

}  // namespace score::sim
