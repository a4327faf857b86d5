// Exports the record of switches for viewers: Perfetto's TrackEvent format (ui.perfetto.dev) and
// the JSON of chrome://tracing. Times are cluster time, in ns. Each node is a process of the trace,
// with one track for its switches and one per job.
#pragma once

#include "proto/client.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace score::proto {

// A TraceBar is one bar of the trace.
struct TraceBar {
  std::string name;         // "job 7", "job 7 fills", "job 7 to swap", or a phase: "freeze"
  std::uint64_t track = 0;  // job, or 0: switches
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::uint64_t epoch = 0;
  const char* category = "job";  // "job", "fill" (at idle priority), "memory", "switch"
};

// Returns the bars of one node, ordered by begin. The bar of a job that runs when the record starts
// begins with the record; the bar of a job that runs on ends with it. Memory that is written to
// swap or read back is a bar of its job, which does not run meanwhile.
std::vector<TraceBar> trace_bars(const wire::NodeTrace& node);

// Returns a serialised perfetto.protos.Trace. If no node has recorded a switch, both formats have a
// mark that says so.
std::string trace_perfetto(const wire::Trace& trace);
// Returns the JSON text {"traceEvents": [...]}.
std::string trace_chrome(const wire::Trace& trace);

}  // namespace score::proto
