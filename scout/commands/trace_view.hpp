// Prints the nodes' traces of their gang switches, as JSON and as figures.
#pragma once

#include "proto/client.pb.h"

#include <string>

namespace score::scout {

std::string trace_json(const wire::Trace& trace);
// Returns percentiles of the phases over all nodes and of the skew between nodes, late switches and
// the overhead with its parts. The words are those of docs/reference/glossary.md.
std::string trace_page(const wire::Trace& trace);

}  // namespace score::scout
