#pragma once
// A plan describes what one node does for one attempt of one job. It is a ShepherdPrepare message,
// parsed and validated once. The shepherd and the spawner read the same bytes through parse_plan().

#include "base/model/distribution.hpp"
#include "base/result.hpp"
#include "proto/common.pb.h"
#include "proto/node.pb.h"
#include "proto/shepherd.pb.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::shepherd {

// Tasks have numbers in the job, which users see as their ranks. The tasks that start with the job
// come first, then the room for spawned tasks (LaunchSpec.spawn). Each MPI world numbers its own
// members; in the job's first world these numbers are equal to those in the job.
struct Plan {
  wire::ShepherdPrepare prepare;
  wire::LaunchSpec spec;
  std::vector<std::string> node_names;  // [node index]
  std::uint32_t size = 0;               // ranks of the world
  std::uint32_t total = 0;              // tasks of the job, including those that may be spawned
  std::vector<std::uint32_t> ranks;     // [task]: number in the job of this node's tasks, ascending
  std::vector<std::uint32_t> apps;      // [task]: index of its program in spec.programs
  std::vector<std::uint32_t> members;   // tasks of this node that are in the world, ascending

  [[nodiscard]] std::uint32_t node_count() const {
    return static_cast<std::uint32_t>(prepare.tasks_on_node_size());
  }

  [[nodiscard]] std::uint32_t local_tasks() const {
    return prepare.tasks_on_node(static_cast<int>(prepare.node_index()));
  }

  [[nodiscard]] std::uint32_t rank_of(std::uint32_t task) const { return ranks[task]; }

  // Returns 0 for the tasks that the job starts with.
  [[nodiscard]] std::uint32_t world() const { return prepare.world().number(); }

  // Returns the task's rank in the world. The task must be a member of it.
  [[nodiscard]] std::uint32_t world_rank_of(std::uint32_t task) const;

  // Returns true if programs may start more tasks.
  [[nodiscard]] bool can_spawn() const { return spec.spawn() > 0; }

  [[nodiscard]] const wire::Program& program_of(std::uint32_t task) const {
    return spec.programs(static_cast<int>(apps[task]));
  }

  // Returns an absolute path.
  [[nodiscard]] const std::string& directory_of(const wire::Program& program) const {
    return program.directory().empty() ? spec.directory() : program.directory();
  }

  // Returns the first rank of each program, [app], followed by `size`.
  [[nodiscard]] std::vector<std::uint32_t> first_ranks() const;

  // Returns how many tasks this node has cores for. The result is smaller than local_tasks() if
  // tasks share cores.
  [[nodiscard]] std::uint32_t places() const;

  [[nodiscard]] bool shares_cores() const { return places() < local_tasks(); }

  [[nodiscard]] base::Distribution distribution() const {
    return static_cast<base::Distribution>(prepare.distribution());
  }

  // Returns the node index of each rank of the world.
  [[nodiscard]] std::vector<std::uint32_t> nodes_of_ranks() const;

  // Returns the node index of each task of the job, by its number in the job.
  [[nodiscard]] std::vector<std::uint32_t> nodes_of_tasks() const;

  // Returns the number of members of the world on each node, [node index].
  [[nodiscard]] std::vector<std::uint32_t> members_on_node() const;

  // Returns the name of the world in PMI and PMIx, which is the same on all nodes. MPI libraries
  // name shared memory after it, so it differs between the clusters of one host. It contains no
  // blanks.
  [[nodiscard]] std::string key_space() const { return key_space_of(world()); }

  [[nodiscard]] std::string key_space_of(std::uint32_t world) const;

  // See choose_mpi().
  [[nodiscard]] bool wants_pmi() const {
    return spec.mpi() == wire::LaunchSpec::PMI1 || spec.mpi() == wire::LaunchSpec::BOTH;
  }

  [[nodiscard]] bool wants_pmix() const {
    return spec.mpi() == wire::LaunchSpec::PMIX || spec.mpi() == wire::LaunchSpec::BOTH;
  }

  // Returns true if the tasks run in namespaces of their own and can be saved.
  [[nodiscard]] bool can_checkpoint() const { return !spec.checkpoint().empty(); }

  // Returns true if the tasks are restored instead of started.
  [[nodiscard]] bool restores() const { return !spec.restart().empty(); }

  // Returns true if the tasks may open PM. A batch script computes in its steps, which have
  // networks of their own.
  [[nodiscard]] bool wants_network() const {
    const bool computes = spec.script().empty() || spec.net() == wire::LaunchSpec::PM;
    return !spec.scout() && computes;
  }

  // Returns true if this task is rank 0 of a job with a terminal.
  [[nodiscard]] bool has_terminal(std::uint32_t task) const {
    return spec.pty() && rank_of(task) == 0;
  }

  // Returns true if the task reads the input that the front end sends.
  [[nodiscard]] bool takes_input(std::uint32_t task) const;
};

// Errors: Malformed (not the message, no tasks here, node index out of range, empty argv, programs
// whose task counts do not add up to the world's), TooLarge (limits of base/limits.hpp).
base::Result<Plan> parse_plan(std::string_view payload);

// Returns the plan of a world that programs of `job` start. Errors: as parse_plan().
base::Result<Plan> plan_of_world(const Plan& job, const wire::SpawnedWorld& world);

// Serialises the plan, as it is now, as a ShepherdPrepare message.
std::string prepare_bytes(const Plan& plan);

// Returns the value of `name` in the program's environment, or else in the job's. The result is a
// view into the spec or the program.
std::optional<std::string_view> find_variable(const wire::LaunchSpec& spec,
                                              const wire::Program& program, std::string_view name);

}  // namespace score::shepherd
