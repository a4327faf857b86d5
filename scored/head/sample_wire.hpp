#pragma once
// A node's sample as it came, checked: nodes are trusted to switch jobs, not to be free of faults.

#include "base/result.hpp"
#include "monitor/samples.hpp"
#include "proto/node.pb.h"

namespace score::head {

// Errors: Malformed: a number that cannot be.
[[nodiscard]] Result<monitor::NodeSample> from_wire(const wire::NodeSample& message);

}  // namespace score::head
