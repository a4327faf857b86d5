// The nodes' records of their switches: as JSON, and as figures.
#pragma once

#include "proto/client.pb.h"

#include <string>

namespace score::scout {

std::string trace_json(const wire::Trace& trace);
// Percentiles of wake-up, stop and whole switch over all nodes, and of the skew between them.
std::string trace_page(const wire::Trace& trace);

}  // namespace score::scout
