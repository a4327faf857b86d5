#pragma once
// Converts a request into numbers, and room on nodes into a distribution of tasks. It needs no
// matrix: a candidate is a node with the number of tasks that it could take.

#include "base/model/model.hpp"
#include "base/result.hpp"
#include "gang/matrix/matrix.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace score::gang {

// A Shape is a request with its defaults filled in. If the request leaves the number of nodes open,
// `nodes` and `tasks` are the minimum.
struct Shape {
  std::uint32_t nodes = 0;         // 0: as few as hold the tasks
  std::uint32_t tasks = 1;         // >= nodes
  std::uint32_t most_on_node = 0;  // tasks; 0: as its cores allow
  std::uint32_t cpus_per_task = 1;
  base::Bytes memory{0};                 // on each node
  std::uint32_t most_nodes = 0;          // > nodes: it takes more nodes if there is room
  std::uint32_t tasks_of_each_more = 0;  // tasks that each one adds; 0: the same on more nodes
  std::uint32_t tasks_per_core = 1;      // this many share the cores of one task
  base::Bytes scratch{0};                // on each node, if it takes as few as it can

  friend bool operator==(const Shape&, const Shape&) = default;
};

// Fills in a shape. Errors (Malformed, TooLarge): one line for the user, for example fewer tasks
// than nodes.
base::Result<Shape> shape_of(const base::ResourceRequest& request);

// Returns the part of the volume on each node, if it takes this many nodes.
base::Bytes scratch_share(const base::ResourceRequest& request, std::size_t nodes);

// Returns the number of tasks that a node with this many free cores takes, by cores alone: 0 ...
// limits::kMaxTasksPerNode.
std::uint32_t tasks_on_cores(const Shape& shape, std::uint32_t cores);

// Returns the number of cores that this many tasks of it take on a node.
std::uint32_t cores_of_tasks(const Shape& shape, std::uint32_t tasks);

// Returns the least tasks_per_core with which the cores [node] can hold the tasks [node]; 1 if they
// take none. If cores_of_tasks() computed the cores, it does so again with the returned value.
std::uint32_t tasks_per_core_of(std::span<const std::uint32_t> tasks_on_node,
                                std::span<const std::vector<std::uint32_t>> cores,
                                std::uint32_t cpus_per_task);

// Returns the shape without its range, with only its minimum.
Shape at_least(const Shape& shape);

// Returns true if room for `larger` is always room for `smaller`. So if `smaller` found no place,
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

// Chooses the least loaded nodes, then the lowest, on which the shape fits; as many as it takes and
// have room. It changes the order of `candidates`. Returns nullopt if the shape does not fit.
std::optional<Choice> choose(const Shape& shape, std::vector<Candidate>& candidates);

}  // namespace score::gang
