#include "proto/trace/trace_json.hpp"

namespace score::proto {

namespace {

using base::JsonWriter;

void write_switch(JsonWriter& json, const wire::SwitchRecord& record) {
  json.begin_object().field("due_ns", record.due_ns()).field("woke_ns", record.woke_ns());
  json.field("stopped_ns", record.stopped_ns()).field("done_ns", record.done_ns());
  json.field("guarded_ns", record.guarded_ns()).field("saved_ns", record.saved_ns());
  json.field("restored_ns", record.restored_ns());
  json.field("slice_ns", record.slice_ns()).field("busy", record.busy());
  json.field("epoch", record.epoch()).list("left", record.left());
  json.list("entered", record.entered()).list("filling", record.filling()).end_object();
}

void write_move(JsonWriter& json, const wire::MemoryMove& move) {
  json.begin_object().field("attempt", move.attempt()).field("out", move.out());
  json.field("began_ns", move.began_ns()).field("took_ns", move.took_ns());
  json.field("bytes", move.bytes()).end_object();
}

void write_channels(JsonWriter& json, const wire::ChannelFigures& channels) {
  json.key("channels").begin_object();
  json.field("handovers", channels.handovers()).field("saved_bursts", channels.saved_bursts());
  json.field("saved_bytes", channels.saved_bytes());
  json.field("restored_bursts", channels.restored_bursts());
  json.field("dropped_full", channels.dropped_full());
  json.field("dropped_strangers", channels.dropped_strangers());
  json.field("frames_sent", channels.frames_sent());
  json.field("frames_resent", channels.frames_resent()).end_object();
}

}  // namespace

std::string trace_json(const wire::Trace& trace, JsonWriter::Layout layout) {
  JsonWriter json(layout);
  json.begin_object().field("schema", "scored.trace/1").key("nodes").begin_array();
  for (const auto& node : trace.nodes()) {
    json.begin_object().field("node", node.node());
    json.field("clock_offset_ns", node.clock_offset_ns());
    json.field("clock_error_ns", node.clock_error_ns()).field("lost", node.lost());
    write_channels(json, node.channels());
    json.key("switches").begin_array();
    for (const auto& record : node.switches()) write_switch(json, record);
    json.end_array().key("moves").begin_array();
    for (const auto& move : node.moves()) write_move(json, move);
    json.end_array().end_object();
  }
  json.end_array().list("silent_nodes", trace.silent_nodes()).end_object();
  return json.text() + "\n";
}

}  // namespace score::proto
