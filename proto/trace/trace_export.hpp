// The record of switches for programs that draw it: Perfetto's TrackEvent format (ui.perfetto.dev)
// and the JSON of chrome://tracing. Times are cluster time, in ns; a node is a process of the
// drawing, with a track for its switches and one for each job.
#pragma once

#include "proto/client.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace score::proto {

// One bar of the drawing.
struct TraceBar {
  std::string name;         // "job 7", "job 7 fills", or a phase: "freeze"
  std::uint64_t track = 0;  // job, or 0: switches
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t epoch = 0;
  const char* category = "job";  // "job", "fill" (at idle priority), "switch"
};

// Of one node, by begin. A job that was running already when the record starts begins with it; one
// that runs on ends with it.
std::vector<TraceBar> trace_bars(const wire::NodeTrace& node);

// A serialised perfetto.protos.Trace. Like the other one, it has one mark that says so if no node
// has recorded a switch.
std::string trace_perfetto(const wire::Trace& trace);
// {"traceEvents": [...]}
std::string trace_chrome(const wire::Trace& trace);

}  // namespace score::proto
