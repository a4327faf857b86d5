#pragma once
// From a request to numbers, and from room on nodes to a distribution of tasks. It needs no matrix:
// a candidate is a node with the number of tasks that it could take.

#include "base/model/model.hpp"
#include "base/result.hpp"
#include "gang/matrix/matrix.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace score::gang {

// A request with its defaults filled in. If it leaves open how many nodes, `nodes` and `tasks` are
// the least.
struct Shape {
  std::uint32_t nodes = 0;         // 0: as few as hold the tasks
  std::uint32_t tasks = 1;         // >= nodes
  std::uint32_t most_on_node = 0;  // tasks; 0: as its cores allow
  std::uint32_t cpus_per_task = 1;
  base::Bytes memory{0};                 // on each node
  std::uint32_t most_nodes = 0;          // > nodes: it takes more of them where there is room
  std::uint32_t tasks_of_each_more = 0;  // what each brings; 0: the same tasks on more nodes
  std::uint32_t tasks_per_core = 1;      // so many share the cores of one task
  base::Bytes scratch{0};                // on each node, if it takes as few as it can

  friend bool operator==(const Shape&, const Shape&) = default;
};

// Errors (Malformed, TooLarge): one line for the user, e.g. fewer tasks than nodes.
base::Result<Shape> shape_of(const base::ResourceRequest& request);

// Its volume's part of each of so many nodes.
base::Bytes scratch_share(const base::ResourceRequest& request, std::size_t nodes);

// The tasks of it that a node with this many free cores takes, by cores alone: 0 ...
// limits::kMaxTasksPerNode.
std::uint32_t tasks_on_cores(const Shape& shape, std::uint32_t cores);

// The cores that so many tasks of it take on a node.
std::uint32_t cores_of_tasks(const Shape& shape, std::uint32_t tasks);

// The least tasks_per_core with which this many cores [node] hold these tasks [node]; 1 if they
// take none. Where cores_of_tasks() gave the cores, it does so again with what this returns.
std::uint32_t tasks_per_core_of(std::span<const std::uint32_t> tasks_on_node,
                                std::span<const std::vector<std::uint32_t>> cores,
                                std::uint32_t cpus_per_task);

// The same without its range: only the least that it needs.
Shape at_least(const Shape& shape);

// True if any room that holds `larger` also holds `smaller`: when `smaller` found no place,
// `larger` finds none.
bool needs_no_less(const Shape& larger, const Shape& smaller);

struct Candidate {
  NodeIndex node = 0;
  std::uint32_t tasks = 0;  // that it could take now, >= 1
  std::uint32_t load = 0;   // jobs on it, over all rows
};

struct Choice {
  std::vector<NodeIndex> nodes;              // ascending
  std::vector<std::uint32_t> tasks_on_node;  // >= 1 each, as even as the nodes allow
};

// The least loaded nodes, then the lowest, on which the shape fits; as many as it takes and have
// room. The order of `candidates` changes. nullopt: it does not fit.
std::optional<Choice> choose(const Shape& shape, std::vector<Candidate>& candidates);

}  // namespace score::gang
