// scnodes prints the nodes, one per line; -v adds switch method, clock and daemon.
#include "base/text/hostlist.hpp"
#include "base/text/json_writer.hpp"
#include "base/units.hpp"
#include "proto/convert/words.hpp"
#include "proto/documents/cluster_documents.hpp"
#include "scout/commands/commands.hpp"
#include "scout/session/job_filter.hpp"
#include "scout/session/session.hpp"
#include "scout/session/text_table.hpp"
#include "scout/session/words.hpp"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace score::scout {

namespace {

using wire::NodeStatus;

constexpr const char* kFields = "node,state,cores,memory,free,scratch,jobs,features,gres,reason";
constexpr const char* kVerboseFields =
    "node,state,cores,memory,free,scratch,jobs,features,gres,switch,priority,clock,control,"
    "switches,late,"
    "rss,cpu,heard,"
    "pid,reason";

std::string state_of(const NodeStatus& node) {
  const std::string state(proto::word_of(node.state()));
  if (node.drained()) return state + "*drained";
  return node.reservation().empty() ? state : state + "*reserved";
}

Tint tint_of(const NodeStatus& node) {
  if (node.state() == wire::NodeStatus::DOWN) return Tint::Bad;
  return node.state() == wire::NodeStatus::UP && !node.drained() && node.reservation().empty()
             ? Tint::Good
             : Tint::Wait;
}

// Returns the node's reason; a reservation in force is shown if there is no other reason.
std::string reason_of(const NodeStatus& node) {
  if (!node.reason().empty() || node.reservation().empty()) return node.reason();
  return "reserved: " + node.reservation();
}

// Returns true unless only the node's name is known, because it never connected.
bool is_known(const NodeStatus& node) {
  return node.memory_bytes() > 0;
}

std::string cores_of(const NodeStatus& node) {
  return is_known(node) ? std::to_string(node.cores()) : "";
}

std::string memory_of(const NodeStatus& node) {
  return is_known(node) ? human_bytes(Bytes(node.memory_bytes())) : "";
}

std::string heard(const NodeStatus& node) {
  return node.last_heard_ns() > 0 ? fmt::format("{:.1f}s", to_seconds(node.last_heard_ns())) : "";
}

std::string free_memory(const NodeStatus& node) {
  if (!is_known(node)) return "";
  return human_bytes(Bytes(node.memory_bytes()) - Bytes(node.memory_reserved_bytes()));
}

std::string partitions_of(const NodeStatus& node) {
  return fmt::format("{}", fmt::join(node.partitions(), ","));
}

// Returns "80G/100G": free scratch of the total.
std::string scratch_of(const NodeStatus& node) {
  const Bytes all(node.scratch_bytes());
  if (all == Bytes(0)) return "";
  return human_bytes(all - Bytes(node.scratch_reserved_bytes())) + "/" + human_bytes(all);
}

std::string jobs_of(const NodeStatus& node) {
  std::string text;
  for (const auto job : node.jobs()) text += (text.empty() ? "" : ",") + std::to_string(job);
  return text;
}

std::string features_of(const NodeStatus& node) {
  std::string text;
  for (const auto& feature : node.features()) text += (text.empty() ? "" : ",") + feature;
  return text;
}

// Returns "gpu:1/2,nic:0/1": units in use of all units of the node.
std::string generic_of(const NodeStatus& node) {
  std::string text;
  for (const auto& kind : node.generic()) {
    text += fmt::format("{}{}:{}/{}", text.empty() ? "" : ",", kind.name(),
                        proto::generic_used(node, kind.name()), kind.count());
  }
  return text;
}

const std::vector<TableColumn<NodeStatus>>& node_columns() {
  constexpr auto kRight = Align::Right;
  constexpr auto kLeft = Align::Left;
  static const std::vector<TableColumn<NodeStatus>> columns = {
      {"node", "NODE", kLeft, [](const NodeStatus& n) { return n.name(); }},
      {"state", "STATE", kLeft, state_of, false, tint_of},
      {"cores", "CORES", kRight, cores_of},
      {"memory", "MEMORY", kRight, memory_of},
      {"free", "FREE", kRight, free_memory},
      {"scratch", "SCRATCH", kRight, scratch_of},
      {"jobs", "JOBS", kLeft, jobs_of},
      {"partitions", "PARTITIONS", kLeft, partitions_of},
      {"features", "FEATURES", kLeft, features_of},
      {"leaf", "LEAF", kLeft, [](const NodeStatus& n) { return n.leaf_switch(); }},
      {"gres", "GRES", kLeft, generic_of},
      {"switch", "SWITCH", kLeft,
       [](const NodeStatus& n) { return std::string(proto::word_of(n.switching().method())); }},
      {"priority", "PRIORITY", kLeft,
       [](const NodeStatus& n) { return std::string(proto::word_of(n.switching().priority())); }},
      {"clock", "CLOCKERR", kRight,
       [](const NodeStatus& n) {
         return fmt::format("{:.0f}us", to_seconds(n.clock_error_ns()) * 1e6);
       }},
      {"switches", "SWITCHES", kRight,
       [](const NodeStatus& n) { return std::to_string(n.switches()); }},
      {"late", "LATE", kRight,
       [](const NodeStatus& n) { return std::to_string(n.late_switches()); }},
      {"rss", "RSS", kRight, [](const NodeStatus& n) { return human_bytes(Bytes(n.rss_bytes())); }},
      {"cpu", "CPU", kRight,
       [](const NodeStatus& n) { return fmt::format("{:.2f}s", to_seconds(n.cpu_ns())); }},
      {"heard", "HEARD", kRight, heard},
      {"control", "CONTROL", kLeft, [](const NodeStatus& n) { return proto::control_words(n); }},
      {"pid", "PID", kRight, [](const NodeStatus& n) { return std::to_string(n.pid()); }},
      {"reservation", "RESERVATION", kLeft, [](const NodeStatus& n) { return n.reservation(); }},
      {"reason", "REASON", kLeft, reason_of},
  };
  return columns;
}

struct NodeListOptions {
  CommonOptions common;
  bool verbose = false;
  std::vector<std::string> nodes;   // host lists
  std::vector<std::string> states;  // lists of words
  std::vector<std::string> partitions;
};

// Returns the names in the given order, without repeats.
Result<std::vector<std::string>> names_of(const NodeListOptions& options) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const auto& list : options.nodes) {
    const auto expanded = expand_hostlist(list);
    if (!expanded) return expanded.error().with_context("NODE '{}'", escape_terminal(list, 80));
    for (const auto& name : *expanded) {
      if (seen.insert(name).second) names.push_back(name);
    }
  }
  return names;
}

Status check_states(const std::set<std::string, std::less<>>& states) {
  constexpr std::array<std::string_view, 6> kKnown = {"up",      "suspect", "down",
                                                      "unknown", "drained", "reserved"};
  for (const auto& state : states) {
    if (std::ranges::find(kKnown, state) != kKnown.end()) continue;
    return fail(Errc::NotFound, "--state: unknown state '{}'; the states are {}",
                escape_terminal(state, 80), fmt::join(kKnown, ", "));
  }
  return {};
}

bool has_state(const NodeStatus& node, const std::set<std::string, std::less<>>& states) {
  return states.empty() || states.contains(proto::word_of(node.state())) ||
         (node.drained() && states.contains("drained")) ||
         (!node.reservation().empty() && states.contains("reserved"));
}

struct Chosen {
  std::vector<NodeStatus> nodes;
  std::vector<Error> missing;
};

bool has_partition(const NodeStatus& node, const std::set<std::string, std::less<>>& wanted) {
  return wanted.empty() || std::ranges::any_of(node.partitions(), [&](const auto& one) {
           return wanted.contains(one);
         });
}

Chosen choose(const wire::NodeList& list, const std::vector<std::string>& names,
              const NodeListOptions& options) {
  const std::set<std::string, std::less<>> wanted(names.begin(), names.end());
  const auto states = words_of_lists(options.states);
  const auto partitions = words_of_lists(options.partitions);
  Chosen chosen;
  for (const auto& node : list.nodes()) {
    const bool is_named = wanted.empty() || wanted.contains(node.name());
    if (is_named && has_state(node, states) && has_partition(node, partitions)) {
      chosen.nodes.push_back(node);
    }
  }
  for (const auto& partition : partitions) {
    const auto is_in = [&](const auto& node) { return has_partition(node, {partition}); };
    if (std::ranges::none_of(list.nodes(), is_in)) {
      chosen.missing.push_back(
          fail(Errc::NotFound, "no partition {}", escape_terminal(partition, 80)));
    }
  }
  for (const auto& name : names) {
    const auto is_it = [&](const auto& node) { return node.name() == name; };
    if (std::ranges::none_of(list.nodes(), is_it)) {
      chosen.missing.push_back(fail(Errc::NotFound, "no node {}", escape_terminal(name, 80)));
    }
  }
  return chosen;
}

// Partitions have a column on clusters that have any.
std::string fields_of(const NodeListOptions& options, bool has_partitions = false) {
  if (!options.common.fields.empty()) return options.common.fields;
  std::string fields = options.verbose ? kVerboseFields : kFields;
  if (has_partitions) fields.insert(fields.find("features"), "partitions,");
  return fields;
}

Status check(const NodeListOptions& options) {
  if (const auto columns = choose_columns(node_columns(), fields_of(options)); !columns) {
    return columns.error();
  }
  if (const auto names = names_of(options); !names) return names.error();
  return check_states(words_of_lists(options.states));
}

Result<int> show_nodes(HeadLink& head, const Invocation& invocation,
                       const NodeListOptions& options) {
  const auto names = names_of(options);
  if (!names) return names.error();
  const auto list = head.ask<wire::NodeList>(wire::ListNodes());
  if (!list) return list.error();
  const bool has_partitions = std::ranges::any_of(
      list->nodes(), [](const NodeStatus& node) { return node.partitions_size() > 0; });
  const auto columns = choose_columns(node_columns(), fields_of(options, has_partitions));
  if (!columns) return columns.error();
  const Chosen chosen = choose(*list, *names, options);
  if (options.common.json) {
    JsonWriter json;
    json.begin_object().field("schema", "scored.nodes/1").key("nodes").begin_array();
    for (const auto& node : chosen.nodes) proto::write_node(json, node);
    print(json.end_array().end_object().text() + "\n");
  } else {
    print(make_table(*columns, chosen.nodes).to_text(table_style(options.common)));
  }
  return report_errors(invocation, chosen.missing);
}

}  // namespace

int scnodes_main(const Invocation& invocation) {
  NodeListOptions options;
  CLI::App app;
  describe(app, invocation, "Shows the nodes of the cluster");
  add_server_option(app, options.common);
  add_table_options(app, options.common);
  app.add_flag("-v,--verbose", options.verbose,
               "Also print switch method, clock error and figures of the daemon");
  app.add_option("-w,--nodelist", options.nodes, "Only these nodes; the same as NODE")
      ->type_name("NODES")
      ->allow_extra_args(false);
  app.add_option("-p,--partition", options.partitions, "Only nodes of these partitions")
      ->type_name("NAME,...")
      ->allow_extra_args(false);
  app.add_option("--state", options.states,
                 "Only nodes in one of these states, such as down,drained")
      ->type_name("STATE,...")
      ->allow_extra_args(false);
  std::vector<std::string> named;
  app.add_option("node", named, "Only these nodes: node05 or node[00-07]")->type_name("NODE");
  if (const auto code = parse(app, invocation)) return *code;
  options.nodes.insert(options.nodes.end(), named.begin(), named.end());
  if (const auto good = check(options); !good) return print_error(invocation, good.error());
  return with_head(
      invocation, options.common,
      [&](HeadLink& head) { return show_nodes(head, invocation, options); }, kReadsOnly);
}

}  // namespace score::scout
