#pragma once
// Builds plans for tests.

#include "scored/job/plan/plan.hpp"

#include <string>
#include <vector>

namespace score::shepherd::test {

// Returns the plan of node number `node` for job 12. program_tasks holds the task count of each
// program, in order.
inline Plan plan_of(const std::vector<std::uint32_t>& tasks_on_node, std::uint32_t node,
                    const std::vector<std::uint32_t>& program_tasks = {0}) {
  wire::ShepherdPrepare prepare;
  for (const auto tasks : tasks_on_node) prepare.add_tasks_on_node(tasks);
  prepare.set_node_index(node);
  prepare.set_node_name("n" + std::to_string(node));
  wire::LaunchSpec spec;
  spec.set_job(12);
  spec.set_directory("/home");
  for (const auto tasks : program_tasks) {
    auto* program = spec.add_programs();
    program->add_argv("true");
    program->set_tasks(tasks);
  }
  prepare.set_spec(spec.SerializeAsString());
  return *parse_plan(prepare.SerializeAsString());
}

}  // namespace score::shepherd::test
