#pragma once
// Reads the demands of a job on its nodes besides cores and memory.

#include "base/result.hpp"
#include "proto/common.pb.h"

#include <string>

namespace score::scout {

// Holds the options as typed; an empty one makes no demand.
struct DemandOptions {
  std::string constraint;  // features of its nodes
  std::string generic;     // generic resources on each node
  std::string scratch;     // size of its volume
};

// Adds the demands to the request. Errors: Malformed, which names the option.
Status add_demands(const DemandOptions& options, wire::ResourceRequest& resources);

}  // namespace score::scout
