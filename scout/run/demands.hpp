#pragma once
// Reads the demands of a job on its nodes besides cores, and the signal before its limits.

#include "base/result.hpp"
#include "proto/common.pb.h"

#include <string>

namespace score::scout {

// Holds the options as typed; an empty one makes no demand.
struct DemandOptions {
  std::string constraint;  // features of its nodes
  std::string generic;     // generic resources on each node
  std::string scratch;     // size of its volume
  std::string licenses;
  std::string switches;  // most leaf switches, "1" or "1@10m"
};

// Adds the demands to the request. Errors: Malformed, which names the option.
Status add_demands(const DemandOptions& options, wire::ResourceRequest& resources);

// Holds the options as typed; at most one counts, and an empty one requests nothing.
struct MemoryOptions {
  std::string per_node;
  std::string per_cpu;  // of the tasks of a job; steps have the memory of their job
};

// Adds the memory per node to the request, whose tasks, nodes and cores per task are set. Errors:
// Malformed and TooLarge, which name the option.
Status add_memory(const MemoryOptions& options, wire::ResourceRequest& resources);

// Checks the names; an empty one is the default. Errors: Malformed, which names the option.
Status check_names(const std::string& account, const std::string& partition);

// Adds "[B:]SIG[@TIME]"; an empty text adds nothing. Errors: Malformed, which names the option.
Status add_limit_signal(const std::string& text, wire::ResourceRequest& resources);
// Checks that the request has a limit that leaves time before the signal, and a script if the
// signal is for a script. `as_slurm`: programs written for Slurm ask for a signal whatever the
// limit is; without one it never comes, and with one that is too short it comes after half of it.
// Errors: Malformed, which names the option.
Status fit_limit_signal(bool as_slurm, wire::ResourceRequest& resources);

}  // namespace score::scout
