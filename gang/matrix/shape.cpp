#include "gang/matrix/shape.hpp"

#include "base/limits.hpp"
#include "base/text/plain.hpp"

#include <algorithm>
#include <tuple>

namespace score::gang {

namespace limits = base::limits;
using base::Errc;

namespace {

constexpr std::uint32_t divide_up(std::uint64_t a, std::uint64_t b) {
  return static_cast<std::uint32_t>((a + b - 1) / b);
}

bool less_loaded(const Candidate& a, const Candidate& b) {
  return std::tie(a.load, a.node) < std::tie(b.load, b.node);
}

bool roomier(const Candidate& a, const Candidate& b) {
  return std::tie(b.tasks, a.load, a.node) < std::tie(a.tasks, b.load, b.node);
}

std::uint64_t room(const std::vector<Candidate>& nodes) {
  std::uint64_t sum = 0;
  for (const Candidate& c : nodes) sum += c.tasks;
  return sum;
}

// Spreads the tasks evenly: no node gets two more than a node that could still take one.
Choice distribute(std::uint32_t tasks, std::vector<Candidate>& nodes) {
  std::sort(nodes.begin(), nodes.end(),
            [](const Candidate& a, const Candidate& b) { return a.node < b.node; });
  std::vector<std::uint32_t> rooms;
  for (const Candidate& c : nodes) rooms.push_back(c.tasks);
  std::sort(rooms.begin(), rooms.end());
  // The level is the least height at which min(room, level) over all nodes holds the tasks.
  std::uint64_t left = tasks;
  std::uint32_t level = 0;
  for (std::size_t i = 0; i < rooms.size(); ++i) {
    level = divide_up(left, rooms.size() - i);
    if (rooms[i] >= level) break;
    left -= rooms[i];
  }
  std::uint64_t surplus = 0;
  for (const std::uint32_t r : rooms) surplus += std::min(r, level);
  surplus -= tasks;

  Choice choice;
  for (const Candidate& c : nodes) {
    choice.nodes.push_back(c.node);
    choice.tasks_on_node.push_back(std::min(c.tasks, level));
  }
  for (std::size_t i = nodes.size(); surplus > 0 && i-- > 0;) {
    if (choice.tasks_on_node[i] != level) continue;
    --choice.tasks_on_node[i];
    --surplus;
  }
  return choice;
}

// Keeps the requested number of nodes.
bool keep_exactly(const Shape& shape, std::vector<Candidate>& nodes) {
  if (nodes.size() < shape.nodes) return false;
  const std::uint32_t even = divide_up(shape.tasks, shape.nodes);
  const auto small = std::partition(nodes.begin(), nodes.end(),
                                    [even](const Candidate& c) { return c.tasks >= even; });
  const auto wanted = nodes.begin() + shape.nodes;
  if (small - nodes.begin() >= wanted - nodes.begin()) {
    std::nth_element(nodes.begin(), wanted - 1, small, less_loaded);
  } else {
    std::nth_element(nodes.begin(), wanted - 1, nodes.end(), roomier);
  }
  nodes.erase(wanted, nodes.end());
  return room(nodes) >= shape.tasks;
}

// Keeps as few nodes as hold the tasks.
bool keep_few(const Shape& shape, std::vector<Candidate>& nodes) {
  if (room(nodes) < shape.tasks) return false;
  std::uint32_t most = 1;
  for (Candidate& c : nodes) most = std::max(most, c.tasks = std::min(c.tasks, shape.tasks));
  // Usually all nodes are alike and this many suffice; if not, all are sorted.
  const auto guess = std::min<std::size_t>(divide_up(shape.tasks, most), nodes.size());
  auto sorted = nodes.begin() + static_cast<std::ptrdiff_t>(guess);
  std::partial_sort(nodes.begin(), sorted, nodes.end(), roomier);
  std::uint64_t have = 0;
  std::size_t used = 0;
  while (have < shape.tasks) {
    if (used == guess)
      std::sort(nodes.begin() + static_cast<std::ptrdiff_t>(guess), nodes.end(), roomier);
    have += nodes[used++].tasks;
  }
  nodes.resize(used);
  return true;
}

// Returns the shape for as many of the nodes as it takes. More nodes always hold what fewer do.
Shape widened(const Shape& shape, const std::vector<Candidate>& nodes) {
  Shape wide = at_least(shape);
  const std::uint32_t more = shape.tasks_of_each_more;
  const auto usable = std::count_if(nodes.begin(), nodes.end(),
                                    [more](const Candidate& c) { return c.tasks >= more; });
  std::uint64_t most =
      std::min<std::uint64_t>(shape.most_nodes, static_cast<std::uint64_t>(usable));
  if (more == 0) most = std::min<std::uint64_t>(most, shape.tasks);
  if (most <= shape.nodes) return wide;
  wide.nodes = static_cast<std::uint32_t>(most);
  wide.tasks += (wide.nodes - shape.nodes) * more;
  return wide;
}

// Fills in a shape with an upper limit of nodes.
base::Status open_range(const base::ResourceRequest& r, Shape& s) {
  if (r.most_nodes == 0) return {};
  s.nodes = std::max(1U, s.nodes);
  s.most_nodes = r.most_nodes;
  if (r.tasks == 0) s.tasks_of_each_more = std::max(1U, s.most_on_node);
  if (r.tasks > 0 && s.most_on_node > 0) {
    s.nodes = std::max(s.nodes, divide_up(r.tasks, s.most_on_node));
  }
  if (s.most_nodes < s.nodes) {
    return fail(Errc::Malformed, "requested at most {}, but it needs {}",
                base::counted(s.most_nodes, "node"), s.nodes);
  }
  const std::uint64_t tasks = std::uint64_t{s.most_nodes} * s.tasks_of_each_more;
  if (tasks > limits::kMaxTasksPerJob) {
    return fail(Errc::TooLarge, "{} tasks are more than the {} allowed", tasks,
                limits::kMaxTasksPerJob);
  }
  return {};
}

}  // namespace

base::Result<Shape> shape_of(const base::ResourceRequest& r) {
  Shape s{r.nodes, r.tasks, r.tasks_per_node, r.cpus_per_task, r.memory_per_node};
  if (s.cpus_per_task == 0) return fail(Errc::Malformed, "a task needs at least 1 core");
  if (auto open = open_range(r, s); !open) return open.error();
  if (s.tasks == 0) {
    if (s.nodes == 0)
      s.nodes = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(r.only_nodes.size()));
    const std::uint64_t tasks = std::uint64_t{s.nodes} * std::max(1U, s.most_on_node);
    if (tasks > limits::kMaxTasksPerJob) {
      return fail(Errc::TooLarge, "{} tasks are more than the {} allowed", tasks,
                  limits::kMaxTasksPerJob);
    }
    s.tasks = static_cast<std::uint32_t>(tasks);
  }
  if (s.tasks > limits::kMaxTasksPerJob) {
    return fail(Errc::TooLarge, "{} tasks are more than the {} allowed", s.tasks,
                limits::kMaxTasksPerJob);
  }
  if (s.nodes == 0 && s.most_on_node > 0) s.nodes = divide_up(s.tasks, s.most_on_node);
  if (s.tasks < s.nodes) {
    return fail(Errc::Malformed, "requested {}, but only {}", base::counted(s.nodes, "node"),
                base::counted(s.tasks, "task"));
  }
  if (s.most_on_node > 0 && std::uint64_t{s.nodes} * s.most_on_node < s.tasks) {
    return fail(Errc::Malformed, "{} with {} each cannot hold {}", base::counted(s.nodes, "node"),
                base::counted(s.most_on_node, "task"), base::counted(s.tasks, "task"));
  }
  s.scratch = scratch_share(r, s.nodes);
  return s;
}

base::Bytes scratch_share(const base::ResourceRequest& request, std::size_t nodes) {
  const std::uint64_t all = request.scratch.value();
  const std::uint64_t parts = std::max<std::size_t>(1, nodes);
  return base::Bytes{all / parts + (all % parts > 0 ? 1 : 0)};
}

std::uint32_t tasks_on_cores(const Shape& shape, std::uint32_t cores) {
  const std::uint64_t room = std::uint64_t{cores / shape.cpus_per_task} * shape.tasks_per_core;
  const auto tasks =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(room, limits::kMaxTasksPerNode));
  return shape.most_on_node > 0 ? std::min(tasks, shape.most_on_node) : tasks;
}

std::uint32_t cores_of_tasks(const Shape& shape, std::uint32_t tasks) {
  return divide_up(tasks, shape.tasks_per_core) * shape.cpus_per_task;
}

std::uint32_t tasks_per_core_of(std::span<const std::uint32_t> tasks_on_node,
                                std::span<const std::vector<std::uint32_t>> cores,
                                std::uint32_t cpus_per_task) {
  std::uint32_t most = 1;
  for (std::size_t m = 0; m < std::min(tasks_on_node.size(), cores.size()); ++m) {
    const std::size_t places = cores[m].size() / std::max(1U, cpus_per_task);
    if (places > 0) most = std::max(most, divide_up(tasks_on_node[m], places));
  }
  return most;
}

Shape at_least(const Shape& shape) {
  Shape least = shape;
  least.most_nodes = least.tasks_of_each_more = 0;
  return least;
}

bool needs_no_less(const Shape& larger, const Shape& smaller) {
  if ((larger.nodes == 0) != (smaller.nodes == 0)) return false;
  const auto unlimited = [](std::uint32_t n) { return n == 0 ? UINT32_MAX : n; };
  // The fullest nodes of the larger one have at least their average.
  return larger.nodes >= smaller.nodes && larger.tasks >= smaller.tasks &&
         (larger.nodes == 0 || std::uint64_t{larger.tasks} * smaller.nodes >=
                                   std::uint64_t{smaller.tasks} * larger.nodes) &&
         larger.cpus_per_task >= smaller.cpus_per_task &&
         larger.tasks_per_core <= smaller.tasks_per_core && larger.memory >= smaller.memory &&
         larger.scratch >= smaller.scratch &&
         unlimited(larger.most_on_node) <= unlimited(smaller.most_on_node);
}

std::optional<Choice> choose(const Shape& shape, std::vector<Candidate>& candidates) {
  const Shape wide = widened(shape, candidates);
  const bool fits = wide.nodes > 0 ? keep_exactly(wide, candidates) : keep_few(wide, candidates);
  if (!fits) return std::nullopt;
  return distribute(wide.tasks, candidates);
}

}  // namespace score::gang
