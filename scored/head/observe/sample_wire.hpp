#pragma once
// A node's sample as it came, checked: nodes are trusted to switch jobs, not to be free of faults.

#include "base/result.hpp"
#include "monitor/meters/scratch_meter.hpp"
#include "monitor/sampler/samples.hpp"
#include "proto/node.pb.h"

#include <vector>

namespace score::head {

// Into `sample`, whose memory is used again. Errors: Malformed: an impossible number; then `sample`
// is of no use.
[[nodiscard]] Status from_wire(const wire::NodeSample& message, monitor::NodeSample& sample);
// Of a sample that is sound and has totals: the servers of all volumes that the node has a part of.
[[nodiscard]] std::vector<monitor::VolumeSample> volumes_of(const wire::NodeSample& message);

}  // namespace score::head
