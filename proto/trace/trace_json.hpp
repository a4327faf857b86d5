// Writes the nodes' records of their switches as JSON, schema scored.trace/1 (scout/JSON.md).
#pragma once

#include "base/text/json_writer.hpp"
#include "proto/client.pb.h"

#include <string>

namespace score::proto {

std::string trace_json(const wire::Trace& trace,
                       base::JsonWriter::Layout layout = base::JsonWriter::Layout::Page);

}  // namespace score::proto
