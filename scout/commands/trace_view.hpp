// Prints the nodes' traces of their gang switches, as JSON and as figures.
#pragma once

#include "proto/client.pb.h"

#include <string>

namespace score::scout {

std::string trace_json(const wire::Trace& trace);
// Returns percentiles over all nodes: wake-up, stop, whole switch, the skew between nodes, and the
// phases of network channels.
std::string trace_page(const wire::Trace& trace);

}  // namespace score::scout
