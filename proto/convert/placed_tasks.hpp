// Converts a node's share of a job. Three messages carry it (PrepareTasks, ShepherdPrepare,
// ShepherdReport) with the same fields and the same checks.
#pragma once

#include "base/limits.hpp"
#include "base/model/model.hpp"
#include "proto/frames/field_check.hpp"

#include <string_view>

namespace score::proto {

template <class Message>
void fill_placed(const base::PlacedTasks& placed, Message& out) {
  out.set_attempt(placed.attempt.value());
  out.set_node_index(placed.node_index);
  for (std::uint32_t tasks : placed.tasks_on_node) out.add_tasks_on_node(tasks);
  for (std::uint32_t core : placed.cores) out.add_cores(core);
  out.set_memory_bytes(placed.memory.value());
  out.set_distribution(static_cast<std::uint32_t>(placed.distribution));
  out.set_restarts(placed.restarts);
  for (std::uint32_t node : placed.nodes) out.add_nodes(node);
  for (const auto& share : placed.generic) {
    auto& entry = *out.add_generic();
    entry.set_name(share.name);
    entry.mutable_indices()->Assign(share.indices.begin(), share.indices.end());
  }
  out.set_scratch_bytes(placed.scratch.value());
}

template <class Message>
void check_generic_shares(FieldCheck& check, const Message& message) {
  namespace limits = base::limits;
  check.at_most("generic", static_cast<std::size_t>(message.generic_size()),
                limits::kMaxGenericKinds);
  for (const auto& share : message.generic()) {
    check.host_name("generic.name", share.name());
    check.at_most("generic.indices", static_cast<std::size_t>(share.indices_size()),
                  limits::kMaxGenericCount);
    for (std::uint32_t index : share.indices()) {
      check.within("generic.indices", index, 0, limits::kMaxGenericCount - 1);
    }
  }
}

// Converts and checks all fields but the user.
template <class Message>
base::Result<base::PlacedTasks> take_placed(std::string_view name, const Message& message) {
  namespace limits = base::limits;
  FieldCheck check(name);
  check.not_zero("attempt", message.attempt());
  auto nodes = static_cast<std::size_t>(message.tasks_on_node_size());
  check.at_most("tasks_on_node", nodes, limits::kMaxNodes);
  check.require("node_index", message.node_index() < nodes, "is not below the number of nodes");
  std::uint64_t total = 0;
  for (std::uint32_t tasks : message.tasks_on_node()) {
    check.within("tasks_on_node", tasks, 0, limits::kMaxTasksPerNode);
    total += tasks;
  }
  check.require("tasks_on_node", total <= limits::kMaxTasksPerJob, "has too many tasks in all");
  check.at_most("cores", static_cast<std::size_t>(message.cores_size()), limits::kMaxCoresPerNode);
  for (std::uint32_t core : message.cores()) {
    check.within("cores", core, 0, limits::kMaxCoresPerNode - 1);
  }
  check.within("distribution", message.distribution(), 0,
               static_cast<int>(base::Distribution::Cyclic));
  check.within("restarts", message.restarts(), 0, base::kAttemptsPerJob - 1);
  const auto named = static_cast<std::size_t>(message.nodes_size());
  check.require("nodes", named == 0 || named == nodes, "are not as many as have tasks");
  for (std::uint32_t node : message.nodes()) check.within("nodes", node, 0, limits::kMaxNodes - 1);
  check_generic_shares(check, message);
  if (!check.ok()) return check.error();

  base::PlacedTasks placed;
  placed.attempt = base::AttemptId(message.attempt());
  placed.node_index = message.node_index();
  placed.tasks_on_node.assign(message.tasks_on_node().begin(), message.tasks_on_node().end());
  placed.cores.assign(message.cores().begin(), message.cores().end());
  placed.memory = base::Bytes(message.memory_bytes());
  placed.distribution = static_cast<base::Distribution>(message.distribution());
  placed.restarts = message.restarts();
  placed.nodes.assign(message.nodes().begin(), message.nodes().end());
  for (const auto& share : message.generic()) {
    placed.generic.push_back({share.name(), {share.indices().begin(), share.indices().end()}});
  }
  placed.scratch = base::Bytes(message.scratch_bytes());
  return placed;
}

}  // namespace score::proto
