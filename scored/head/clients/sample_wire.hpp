#pragma once
// These functions check and read a node's sample. Nodes are trusted to switch jobs, but not to be
// free of faults.

#include "base/result.hpp"
#include "monitor/meters/scratch_meter.hpp"
#include "monitor/sampler/samples.hpp"
#include "proto/frames/field_check.hpp"
#include "proto/node.pb.h"
#include "proto/samples_values.inc"  // IWYU pragma: export

#include <vector>

namespace score::head {

inline constexpr Duration kLongestTime = std::chrono::hours(24 * 365 * 100);

// Reads into `sample`, whose memory is reused. Errors: BadMessage; `sample` is then unusable.
[[nodiscard]] Status from_wire(const wire::NodeSample& message, monitor::NodeSample& sample);
// Returns the servers of all volumes that the node has a part of. The sample must be sound and have
// totals.
[[nodiscard]] std::vector<monitor::VolumeSample> volumes_of(const wire::NodeSample& message);

}  // namespace score::head
