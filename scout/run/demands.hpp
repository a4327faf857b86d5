#pragma once
// What a job demands of its nodes beside cores and memory.

#include "base/result.hpp"
#include "proto/common.pb.h"

#include <string>

namespace score::scout {

// As typed; empty: none.
struct DemandOptions {
  std::string constraint;  // features of its nodes
  std::string generic;     // generic resources on each node
  std::string scratch;     // size of its volume
};

// Errors: Malformed, naming the option.
Status add_demands(const DemandOptions& options, wire::ResourceRequest& resources);

}  // namespace score::scout
