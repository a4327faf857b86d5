#include "gang/matrix/shape.hpp"

#include "base/limits.hpp"

#include <gtest/gtest.h>

namespace score::gang {
namespace {

namespace limits = base::limits;
using Numbers = std::vector<std::uint32_t>;

base::ResourceRequest request(std::uint32_t nodes, std::uint32_t tasks, std::uint32_t per_node) {
  base::ResourceRequest r;
  r.nodes = nodes;
  r.tasks = tasks;
  r.tasks_per_node = per_node;
  return r;
}

struct ShapeCase {
  const char* name;
  base::ResourceRequest request;
  std::uint32_t nodes, tasks;
};

TEST(Shape, FillsInDefaults) {
  const ShapeCase cases[] = {
      {"nothing", request(0, 0, 0), 1, 1},
      {"nodes", request(4, 0, 0), 4, 4},
      {"nodes and tasks a node", request(4, 0, 2), 4, 8},
      {"tasks", request(0, 7, 0), 0, 7},
      {"tasks and tasks a node", request(0, 7, 2), 4, 7},
      {"all", request(4, 7, 2), 4, 7},
      {"tasks a node", request(0, 0, 3), 1, 3},
  };
  for (const ShapeCase& c : cases) {
    const auto shape = shape_of(c.request);
    ASSERT_TRUE(shape) << c.name;
    EXPECT_EQ(shape->nodes, c.nodes) << c.name;
    EXPECT_EQ(shape->tasks, c.tasks) << c.name;
  }
}

TEST(Shape, NodeRangeNeedsItsMinimum) {
  auto r = request(2, 0, 3);
  r.most_nodes = 4;
  const auto grows = shape_of(r);
  ASSERT_TRUE(grows);
  EXPECT_EQ(*grows, (Shape{2, 6, 3, 1, {}, 4, 3}));
  r = request(2, 8, 2);
  r.most_nodes = 4;
  const auto spread = shape_of(r);
  ASSERT_TRUE(spread);
  EXPECT_EQ(*spread, (Shape{4, 8, 2, 1, {}, 4, 0})) << "two nodes do not hold them";
  r.most_nodes = 3;
  EXPECT_FALSE(shape_of(r));
  r = request(5, 0, 0);
  r.most_nodes = 4;
  EXPECT_FALSE(shape_of(r));
  r = request(1, 0, limits::kMaxTasksPerNode);
  r.most_nodes = limits::kMaxNodes;
  EXPECT_FALSE(shape_of(r)) << "more tasks than a job may have";
}

struct ChooseCase {
  const char* name;
  Shape shape;
  std::vector<Candidate> room;  // node, tasks, load
  Numbers nodes;                // empty: does not fit
  Numbers tasks;
};

TEST(Shape, ChoosesLeastLoadedNodesAndSpreadsEvenly) {
  const ChooseCase cases[] = {
      {"least loaded", {2, 2}, {{0, 1, 3}, {1, 1, 1}, {2, 1, 0}}, {1, 2}, {1, 1}},
      {"then the lowest", {2, 2}, {{3, 1, 0}, {1, 1, 0}, {2, 1, 0}}, {1, 2}, {1, 1}},
      {"uneven number", {3, 7}, {{0, 4, 0}, {1, 4, 0}, {2, 4, 0}}, {0, 1, 2}, {3, 2, 2}},
      {"uneven nodes", {2, 10}, {{0, 8, 0}, {1, 3, 0}, {2, 1, 0}}, {0, 1}, {7, 3}},
      {"as few as hold them", {0, 5}, {{0, 2, 0}, {1, 4, 5}, {2, 2, 0}}, {0, 1}, {2, 3}},
      {"one task", {0, 1}, {{0, 4, 2}, {1, 1, 0}}, {1}, {1}},
      {"too few nodes", {3, 3}, {{0, 4, 0}, {1, 4, 0}}, {}, {}},
      {"too little room", {2, 9}, {{0, 4, 0}, {1, 4, 0}}, {}, {}},
      {"no room at all", {0, 1}, {}, {}, {}},
      {"as many as there are",
       {1, 1, 0, 1, {}, 9, 1},
       {{0, 1, 0}, {1, 1, 0}, {2, 1, 0}},
       {0, 1, 2},
       {1, 1, 1}},
      {"not more than it takes",
       {1, 2, 2, 1, {}, 2, 2},
       {{0, 2, 1}, {1, 2, 0}, {2, 1, 0}, {3, 2, 0}},
       {1, 3},
       {2, 2}},
      {"the same tasks on more nodes",
       {1, 3, 0, 1, {}, 8, 0},
       {{0, 4, 0}, {1, 1, 0}, {2, 1, 0}, {3, 1, 0}},
       {0, 1, 2},
       {1, 1, 1}},
      {"fewer than the least", {2, 2, 0, 1, {}, 4, 1}, {{0, 4, 0}}, {}, {}},
  };
  for (const ChooseCase& c : cases) {
    auto room = c.room;
    const auto choice = choose(c.shape, room);
    ASSERT_EQ(choice.has_value(), !c.nodes.empty()) << c.name;
    if (!choice) continue;
    EXPECT_EQ(choice->nodes, c.nodes) << c.name;
    EXPECT_EQ(choice->tasks_on_node, c.tasks) << c.name;
  }
}

// A restarted head computes from the cores how many tasks share them.
TEST(Shape, ComputesTasksPerCoreFromCores) {
  for (std::uint32_t per_core = 1; per_core <= 9; ++per_core) {
    for (std::uint32_t tasks = 1; tasks <= 40; ++tasks) {
      Shape shape{0, tasks};
      shape.cpus_per_task = 2;
      shape.tasks_per_core = per_core;
      const Numbers on_node = {tasks, 3};
      std::vector<Numbers> cores;
      for (const std::uint32_t n : on_node) cores.emplace_back(cores_of_tasks(shape, n));
      shape.tasks_per_core = tasks_per_core_of(on_node, cores, 2);
      EXPECT_LE(shape.tasks_per_core, per_core);
      for (std::size_t m = 0; m < 2; ++m) {
        EXPECT_EQ(cores_of_tasks(shape, on_node[m]), cores[m].size()) << per_core << " " << tasks;
      }
    }
  }
  EXPECT_EQ(tasks_per_core_of(Numbers{5}, std::vector<Numbers>{{}}, 1), 1U) << "a parallel shell";
}

TEST(Shape, MoreTasksPerNodeNeedNoLess) {
  EXPECT_FALSE(needs_no_less({4, 8, 0, 1, {}, 0, 0, 2}, {2, 4})) << "they share cores";
  EXPECT_TRUE(needs_no_less({4, 8, 0, 1, {}, 0, 0, 2}, {2, 4, 0, 1, {}, 0, 0, 2}));
  EXPECT_TRUE(needs_no_less({4, 8}, {2, 4}));
  EXPECT_TRUE(needs_no_less({0, 8}, {0, 3}));
  EXPECT_FALSE(needs_no_less({4, 4}, {1, 4})) << "one node may be too small for four";
  EXPECT_FALSE(needs_no_less({2, 4}, {4, 8}));
  EXPECT_FALSE(needs_no_less({0, 8}, {2, 2}));
}

}  // namespace
}  // namespace score::gang
