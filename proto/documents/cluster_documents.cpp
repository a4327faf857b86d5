// This module is tested by words_test.cpp of scout, test_queries.py and test_api.py.
// Writes the state of the cluster and its nodes as JSON.
#include "proto/documents/cluster_documents.hpp"

#include "base/text.hpp"
#include "proto/convert/words.hpp"
#include "proto/documents/words.hpp"

namespace score::proto {

using wire::NodeStatus;

std::uint32_t generic_used(const NodeStatus& node, const std::string& kind) {
  for (const auto& used : node.generic_used()) {
    if (used.name() == kind) return used.count();
  }
  return 0;
}

std::string setting_text(const wire::Info& info, Setting setting) {
  for (const auto& each : info.settings()) {
    if (each.name() == rule_of(setting).name) return escape_terminal(each.value(), 80);
  }
  return {};
}

namespace {

void write_generic(JsonWriter& json, const NodeStatus& node) {
  json.key("gres").begin_array();
  for (const auto& kind : node.generic()) {
    json.begin_object().field("name", kind.name()).field("count", kind.count());
    json.field("used", generic_used(node, kind.name())).field("shared", kind.shared());
    json.field("memory_bytes", kind.memory_bytes()).end_object();
  }
  json.end_array();
}

}  // namespace

void write_node(JsonWriter& json, const NodeStatus& node) {
  json.begin_object().field("node", node.name()).field("state", word_of(node.state()));
  json.field("drained", node.drained()).field("reason", node.reason());
  json.field("reservation", node.reservation());
  json.field("cores", node.cores()).field("memory_bytes", node.memory_bytes());
  json.field("memory_reserved_bytes", node.memory_reserved_bytes()).list("jobs", node.jobs());
  json.field("scratch_bytes", node.scratch_bytes());
  json.field("scratch_reserved_bytes", node.scratch_reserved_bytes());
  json.list("features", node.features());
  if (node.partitions_size() > 0) json.list("partitions", node.partitions());
  if (!node.leaf_switch().empty()) json.field("leaf_switch", node.leaf_switch());
  write_generic(json, node);
  json.field("switch_method", word_of(node.switching().method()));
  json.field("priority_method", word_of(node.switching().priority()));
  json.field("clock_error_ns", node.clock_error_ns()).field("switches", node.switches());
  json.field("late_switches", node.late_switches()).field("rss_bytes", node.rss_bytes());
  json.field("cpu_s", to_seconds(node.cpu_ns()))
      .field("last_heard_s", to_seconds(node.last_heard_ns()));
  json.field("control", control_words(node)).field("pid", node.pid()).end_object();
}

void write_partitions(JsonWriter& json, const wire::Info& info) {
  json.key("partitions").begin_array();
  for (const wire::PartitionState& p : info.partitions()) {
    json.begin_object().field("partition", p.name()).field("default", p.is_default());
    json.field("nodelist", p.nodes()).field("nodes", p.nodes_known());
    json.field("nodes_up", p.nodes_up()).field("order", p.order());
    json.field("max_time_s", to_seconds(p.max_time_ns())).field("fill", !p.no_fill());
    json.list("users", p.users()).list("accounts", p.accounts()).list("limits", p.limits());
    json.field("jobs_placed", p.jobs_running()).field("jobs_pending", p.jobs_waiting());
    json.end_object();
  }
  json.end_array();
}

void write_licenses(JsonWriter& json, const wire::Info& info) {
  json.key("licenses").begin_array();
  for (const wire::LicenseState& l : info.licenses()) {
    json.begin_object().field("license", l.name()).field("total", l.total());
    json.field("used", l.used()).field("jobs_pending", l.jobs_waiting()).end_object();
  }
  json.end_array();
}

void write_info(JsonWriter& json, const wire::Info& info) {
  json.field("schema", "scored.info/1");
  json.field("cluster", info.cluster()).field("version", info.version());
  json.field("virtual", info.virtual_cluster()).field("socket", info.socket());
  json.field("head_pid", info.pid()).field("quantum_s", to_seconds(info.quantum_ns()));
  const auto slots = parse_number<std::uint32_t>(setting_text(info, Setting::Slots));
  json.field("max_slots", slots.value_or(0));
  json.field("epoch", info.epoch());
  json.field("cycle_s", to_seconds(info.cycle_ns())).key("slices").begin_array();
  for (const auto& slice : info.slices()) {
    json.begin_object()
        .field("slot", slice.slot())
        .field("length_s", to_seconds(slice.length_ns()));
    json.list("jobs", slice.jobs()).end_object();
  }
  json.end_array().field("nodes_up", info.nodes_up()).field("nodes_known", info.nodes_known());
  json.field("jobs_active", info.jobs_active()).field("epochs", info.epochs());
  json.field("idle_detection", setting_text(info, Setting::IdleDetection) == "on");
  json.field("idle_left", info.idle_left());
  json.field("fill", setting_text(info, Setting::Fill)).list("fill_queues", info.fill_queues());
  json.field("idle_returned", info.idle_returned()).field("early_yields", info.early_yields());
  json.field("late_epochs", info.late_epochs()).field("stale_reports", info.stale_reports());
  json.field("head_cpu_s", to_seconds(info.head_cpu_ns()));
  json.field("head_rss_bytes", info.head_rss_bytes());
  if (!info.heads().empty()) {
    json.key("heads").begin_array();
    for (const auto& head : info.heads()) {
      json.begin_object().field("name", head.name()).field("in_charge", head.in_charge());
      json.field("state", state_words(head)).end_object();
    }
    json.end_array();
  }
  if (info.partitions_size() > 0) write_partitions(json, info);
  if (info.licenses_size() > 0) write_licenses(json, info);
  json.field("dashboard_url", info.dashboard_url()).key("limits").begin_object();
  json.field("max_weight", info.max_weight()).field("max_priority", info.max_priority());
  json.field("max_jobs", info.max_jobs()).list("queues", info.queues()).end_object();
}

}  // namespace score::proto
