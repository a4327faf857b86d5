// This file is tested by gang/head/cluster_test.cpp and gang/head/placement_test.cpp.
#include "gang/schedule/request_check.hpp"

#include "base/limits.hpp"
#include "base/model/resources.hpp"
#include "base/text.hpp"
#include "base/text/plain.hpp"
#include "gang/resources/demands.hpp"
#include "gang/resources/unit_registry.hpp"

#include <fmt/ranges.h>

#include <algorithm>

namespace score::gang {

namespace limits = base::limits;
using base::Errc;
using base::fail;
using base::Result;

namespace {

struct Check {
  const NodeTable& nodes;
  const base::ResourceRequest& request;
  bool may_share = false;  // tasks may share cores
  std::vector<bool> allowed;
};

Result<void> check_partition(const Check& c) {
  const Partitions& partitions = c.nodes.partitions();
  const std::string& name = c.request.partition;
  if (name.empty() || partitions.find(name) != nullptr) return {};
  std::vector<std::string> known;
  for (const Partition& one : partitions.all()) known.push_back(one.name);
  return fail(Errc::NotFound, "no partition {}: {}", base::escape_terminal(name, 80),
              known.empty() ? "this cluster has no partitions"
                            : fmt::format("there are {}", fmt::join(known, ", ")));
}

Result<void> check_names(const Check& c) {
  for (const auto* list : {&c.request.only_nodes, &c.request.except_nodes}) {
    for (const std::string& name : *list) {
      if (!c.nodes.find(name)) return fail(Errc::NotFound, "no node {}", name);
    }
  }
  return {};
}

// Returns empty nodes on which the request fits. A node that was never seen counts as large enough.
std::optional<std::vector<NodeIndex>> nodes_for(const Check& c, const Shape& shape) {
  std::vector<Candidate> room;
  for (NodeIndex index = 0; index < c.nodes.size(); ++index) {
    const Node& node = c.nodes[index];
    if (node.removed || !is_allowed(c.allowed, index)) continue;
    if (node.seen && node.info.memory < shape.memory) continue;
    if (node.seen && node.info.scratch < shape.scratch) continue;
    if (node.seen && !offers(node.info.generic, c.request.generic)) continue;
    const bool is_bounded = node.seen && !c.request.overlay;
    const std::uint64_t enough = std::uint64_t{limits::kMaxTasksPerNode} * shape.cpus_per_task;
    const auto cores = static_cast<std::uint32_t>(std::min<std::uint64_t>(enough, UINT32_MAX));
    const std::uint32_t tasks = tasks_on_cores(shape, is_bounded ? node.info.cores : cores);
    if (tasks > 0) room.push_back({index, tasks, 0});
  }
  auto choice = c.nodes.topology().choose(shape, c.nodes.leaves(), std::move(room));
  if (!choice) return std::nullopt;
  return std::move(choice->nodes);
}

bool fits_somewhere(const Check& c, const Shape& shape) {
  return nodes_for(c, shape).has_value();
}

// Finds the least number of tasks per core that fits (docs/adr/0057): if k per core fit, more do
// too.
bool fits_shared(const Check& c, Shape& shape) {
  if (!c.may_share) return false;
  Shape shared = shape;
  std::uint32_t too_few = 1;
  std::uint32_t enough = limits::kMaxTasksPerCore + 1;
  while (enough - too_few > 1) {
    shared.tasks_per_core = too_few + (enough - too_few) / 2;
    (fits_somewhere(c, shared) ? enough : too_few) = shared.tasks_per_core;
  }
  if (enough > limits::kMaxTasksPerCore) return false;
  shape.tasks_per_core = enough;
  return true;
}

// A volume is spread over all nodes of its job. If their number is open, the job takes as many as
// its tasks need, or more if the volume needs more.
bool fits_spread(const Check& c, Shape& shape, std::size_t most) {
  if (shape.scratch == base::Bytes{0} || shape.nodes != 0) return false;
  Shape spread = shape;
  spread.scratch = base::Bytes{0};
  auto needed = nodes_for(c, spread);
  if (!needed && fits_shared(c, spread)) needed = nodes_for(c, spread);
  if (!needed) return false;
  spread.scratch = scratch_share(c.request, needed->size());
  bool fits = fits_somewhere(c, spread);
  most = std::min<std::size_t>(most, shape.tasks);
  for (std::size_t nodes = needed->size(); !fits && nodes < most;) {
    nodes = std::min(most, nodes * 2);
    spread.nodes = static_cast<std::uint32_t>(nodes);
    spread.scratch = scratch_share(c.request, nodes);
    fits = fits_somewhere(c, spread);
  }
  if (fits) shape = spread;
  return fits;
}

// Largest describes the nodes that qualify.
struct Largest {
  std::size_t count = 0;
  bool all_seen = true;
  const Node* cores = nullptr;   // the node with most
  const Node* memory = nullptr;  // likewise
  const Node* scratch = nullptr;
  base::Bytes all_scratch{0};
};

Largest largest_of(const Check& c) {
  Largest largest;
  for (NodeIndex index = 0; index < c.nodes.size(); ++index) {
    const Node& node = c.nodes[index];
    if (node.removed || !is_allowed(c.allowed, index)) continue;
    ++largest.count;
    largest.all_seen &= node.seen;
    largest.all_scratch = largest.all_scratch + node.info.scratch;
    if (largest.cores == nullptr || node.info.cores > largest.cores->info.cores) {
      largest.cores = &node;
    }
    if (largest.memory == nullptr || node.info.memory > largest.memory->info.memory) {
      largest.memory = &node;
    }
    if (largest.scratch == nullptr || node.info.scratch > largest.scratch->info.scratch) {
      largest.scratch = &node;
    }
  }
  return largest;
}

// Returns a number of nodes that may hold the tasks of a request with too many cores per node.
std::string advice(const Shape& shape, const Largest& largest) {
  const std::uint32_t each = largest.cores->info.cores / shape.cpus_per_task;
  const std::uint32_t needed = each == 0 ? 0 : (shape.tasks + each - 1) / each;
  if (needed == 0 || needed > largest.count) return {};
  return fmt::format(": -N {} -n {} may fit", needed, shape.tasks);
}

std::string too_much_scratch(const Check& c, const Shape& shape, const Largest& all_nodes) {
  const Node& largest = *all_nodes.scratch;
  const base::Bytes most = largest.info.scratch;
  if (most == base::Bytes{0}) return "no node offers scratch ([pario] in its scored.toml)";
  const std::uint64_t all = c.request.scratch.value();
  const std::uint64_t needed = all / most.value() + (all % most.value() > 0 ? 1 : 0);
  if (needed > all_nodes.count) {
    return fmt::format("requested {} of scratch; the {} that can be used offer {} in all",
                       base::human_bytes(c.request.scratch), base::counted(all_nodes.count, "node"),
                       base::human_bytes(all_nodes.all_scratch));
  }
  return fmt::format(
      "requested {} of scratch on {}; the largest node offers {} ({}): -N {} may fit",
      base::human_bytes(c.request.scratch), base::counted(std::max(1U, shape.nodes), "node"),
      base::human_bytes(most), largest.info.name, needed);
}

// Returns one line that names the part of the request that is too large.
base::Error no_room(const Check& c, const Shape& shape) {
  const Largest largest = largest_of(c);
  if (largest.all_seen && shape.memory > largest.memory->info.memory) {
    return fail(Errc::TooLarge, "requested {} of memory per node; the largest node has {} ({})",
                base::human_bytes(shape.memory), base::human_bytes(largest.memory->info.memory),
                largest.memory->info.name);
  }
  if (largest.all_seen && shape.scratch > largest.scratch->info.scratch) {
    return fail(Errc::TooLarge, "{}", too_much_scratch(c, shape, largest));
  }
  const std::uint32_t on_node =
      shape.nodes == 0 ? 1 : (shape.tasks + shape.nodes - 1) / shape.nodes;
  const std::uint64_t cores = std::uint64_t{on_node} * shape.cpus_per_task;
  Shape crowded = shape;
  crowded.tasks_per_core = limits::kMaxTasksPerCore;
  const std::uint32_t most =
      largest.all_seen ? tasks_on_cores(crowded, largest.cores->info.cores) : 0;
  if (c.may_share && most > 0 && on_node > most) {
    return fail(Errc::TooLarge,
                "requested {} per node; the largest node holds {} ({}: {}, {} tasks per core)",
                base::counted(on_node, "task"), most, largest.cores->info.name,
                base::counted(largest.cores->info.cores, "core"), limits::kMaxTasksPerCore);
  }
  if (largest.all_seen && !c.request.overlay && cores > largest.cores->info.cores) {
    return fail(Errc::TooLarge, "requested {} per node ({} x {}); the largest node has {} ({}){}",
                base::counted(cores, "core"), base::counted(on_node, "task"), shape.cpus_per_task,
                largest.cores->info.cores, largest.cores->info.name, advice(shape, largest));
  }
  return fail(
      Errc::TooLarge, "{} with {} each do not fit on the {} that can be used{}",
      base::counted(shape.tasks, "task"), base::counted(shape.cpus_per_task, "core"),
      base::counted(largest.count, "node"),
      c.may_share ? fmt::format(" (at most {} share a core)", limits::kMaxTasksPerCore) : "");
}

std::string what_leaves(const Check& c) {
  const bool has_lists = !c.request.only_nodes.empty() || !c.request.except_nodes.empty();
  const std::string partition =
      c.request.partition.empty() ? "" : fmt::format("partition {}", c.request.partition);
  if (c.request.features.empty() && !has_lists) {
    return partition.empty() ? "the cluster has" : partition + " has";
  }
  const std::string within = partition.empty() ? "" : " in " + partition;
  if (c.request.features.empty()) return fmt::format("the node lists{} leave", within);
  return fmt::format("constraint '{}'{}{} leaves", base::format_constraint(c.request.features),
                     has_lists ? " with the node lists" : "", within);
}

Result<void> check_switches(const Check& c, const Shape& shape) {
  const std::uint32_t most = c.request.switches;
  const auto nodes = most > 0 ? nodes_for(c, shape) : std::nullopt;
  if (!nodes) return {};
  const std::size_t needed = count_leaves(c.nodes.leaves(), *nodes);
  if (needed <= most) return {};
  return fail(Errc::TooLarge, "requested nodes within {} (--switches); it needs {}",
              base::counted(most, "switch", "switches"), needed);
}

Result<void> check_room(const Check& c, Shape& shape) {
  const auto count = c.allowed.empty() ? static_cast<std::ptrdiff_t>(c.nodes.count())
                                       : std::count(c.allowed.begin(), c.allowed.end(), true);
  const std::uint32_t wanted = std::max(1U, shape.nodes);
  if (count < std::ptrdiff_t{wanted}) {
    return fail(Errc::TooLarge, "requested {}; {} {}", base::counted(wanted, "node"),
                what_leaves(c), count);
  }
  if (c.request.overlay && shape.scratch > base::Bytes{0}) {
    return fail(Errc::Unsupported, "a job that takes no cores gets no scratch");
  }
  const auto most = static_cast<std::size_t>(count);
  if (fits_spread(c, shape, most) || fits_somewhere(c, shape) || fits_shared(c, shape)) {
    return check_switches(c, shape);
  }
  return no_room(c, shape);
}

}  // namespace

std::vector<bool> allowed_nodes(const NodeTable& nodes, const base::ResourceRequest& request) {
  const bool names_any = !request.only_nodes.empty() || !request.except_nodes.empty();
  const bool is_open = !names_any && request.features.empty();
  if (is_open && request.partition.empty()) return {};
  std::vector<bool> allowed(nodes.size(), request.only_nodes.empty());
  const auto set = [&](const std::vector<std::string>& list, bool may) {
    for (const std::string& name : list) {
      if (const auto found = nodes.find(name)) allowed[*found] = may;
    }
  };
  set(request.only_nodes, true);
  set(request.except_nodes, false);
  for (NodeIndex index = 0; index < nodes.size(); ++index) {
    allowed[index] = allowed[index] && !nodes[index].removed &&
                     may_have_features(nodes[index], request) &&
                     nodes.partitions().allow(request.partition, nodes.name(index));
  }
  // A partition of all nodes restricts nothing, so its jobs are placed as jobs without one.
  const bool has_all = std::ranges::all_of(allowed, [](bool is_allowed) { return is_allowed; });
  if (is_open && has_all && nodes.partitions().find(request.partition) != nullptr) return {};
  return allowed;
}

bool allows(const NodeTable& nodes, const base::ResourceRequest& request, NodeIndex node) {
  const auto names = [&](const std::vector<std::string>& list) {
    return std::ranges::find(list, nodes.name(node)) != list.end();
  };
  return (request.only_nodes.empty() || names(request.only_nodes)) &&
         !names(request.except_nodes) && may_have_features(nodes[node], request) &&
         nodes.partitions().allow(request.partition, nodes.name(node));
}

Result<Shape> check_request(const NodeTable& nodes, const base::ResourceRequest& request,
                            bool overcommit) {
  if (request.weight < limits::kMinWeight || request.weight > limits::kMaxWeight) {
    return fail(Errc::TooLarge, "weight {} is outside {} ... {}", request.weight,
                limits::kMinWeight, limits::kMaxWeight);
  }
  if (request.scheduled_limit < Duration::zero() || request.wall_limit < Duration::zero()) {
    return fail(Errc::Malformed, "a time limit is negative");
  }
  const Check c{nodes, request, overcommit && !request.own_cores && !request.overlay,
                allowed_nodes(nodes, request)};
  if (auto known = check_partition(c); !known) return known.error();
  if (auto known = check_names(c); !known) return known.error();
  Result<Shape> shape = shape_of(request);
  if (!shape) return shape;
  if (auto met = check_demands(nodes, request, c.allowed, shape->nodes); !met) return met.error();
  if (auto room = check_room(c, *shape); !room) return room.error();
  return shape;
}

Result<Shape> check_waiting(const NodeTable& nodes, const base::ResourceRequest& request,
                            bool overcommit) {
  auto shape = check_request(nodes, request, overcommit);
  if (shape || request.partition.empty()) return shape;
  base::ResourceRequest anywhere = request;
  anywhere.partition.clear();
  return check_request(nodes, anywhere, overcommit);
}

}  // namespace score::gang
