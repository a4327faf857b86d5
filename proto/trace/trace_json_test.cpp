#include "proto/trace/trace_json.hpp"

#include <gtest/gtest.h>

namespace score::proto {
namespace {

TEST(TraceJson, WritesTheRecordedSwitches) {
  wire::Trace trace;
  auto& node = *trace.add_nodes();
  node.set_node("n0");
  node.set_lost(2);
  auto& record = *node.add_switches();
  record.set_due_ns(5);
  record.add_left(7);
  auto& move = *node.add_moves();
  move.set_attempt(257);
  move.set_out(true);
  move.set_began_ns(3);
  move.set_took_ns(4);
  move.set_bytes(5);
  trace.add_silent_nodes("n1");
  EXPECT_EQ(
      trace_json(trace, base::JsonWriter::Layout::Line),
      R"({"schema":"scored.trace/1","nodes":[{"node":"n0","clock_offset_ns":0,)"
      R"("clock_error_ns":0,"lost":2,"channels":{"handovers":0,"saved_bursts":0,"saved_bytes":0,)"
      R"("restored_bursts":0,"dropped_full":0,"dropped_strangers":0,"frames_sent":0,)"
      R"("frames_resent":0},"switches":[{"due_ns":5,"woke_ns":0,"stopped_ns":0,)"
      R"("done_ns":0,"guarded_ns":0,"saved_ns":0,"restored_ns":0,"slice_ns":0,"busy":false,"epoch":0,"left":[7],"entered":[],"filling":[]}],)"
      R"("moves":[{"attempt":257,"out":true,"began_ns":3,"took_ns":4,"bytes":5}]}],"silent_nodes":["n1"]})"
      "\n");
}

}  // namespace
}  // namespace score::proto
