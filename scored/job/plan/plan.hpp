#pragma once
// What one node does of one attempt: ShepherdPrepare, read once and checked for sense. The shepherd
// and the spawner read the same bytes through parse_plan().

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

// Tasks have numbers in the job, shown to users as their ranks: first those that start with it,
// then those that are room for spawned ones (LaunchSpec.spawn). Each MPI world numbers its own
// members: those of the job's first world are numbered as in the job.
struct Plan {
  wire::ShepherdPrepare prepare;
  wire::LaunchSpec spec;
  std::vector<std::string> node_names;  // [node index]
  std::uint32_t size = 0;               // ranks of the world
  std::uint32_t total = 0;              // tasks of the job, those that may be spawned included
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

  // 0: the tasks that the job starts with.
  [[nodiscard]] std::uint32_t world() const { return prepare.world().number(); }

  // The task's rank in the world, whose member it is.
  [[nodiscard]] std::uint32_t world_rank_of(std::uint32_t task) const;

  // Programs may start more tasks.
  [[nodiscard]] bool can_spawn() const { return spec.spawn() > 0; }

  [[nodiscard]] const wire::Program& program_of(std::uint32_t task) const {
    return spec.programs(static_cast<int>(apps[task]));
  }

  // Absolute.
  [[nodiscard]] const std::string& directory_of(const wire::Program& program) const {
    return program.directory().empty() ? spec.directory() : program.directory();
  }

  // [app]: its first rank, then `size`.
  [[nodiscard]] std::vector<std::uint32_t> first_ranks() const;

  // How many tasks this node has cores for: as many as it has, or fewer, if they share them.
  [[nodiscard]] std::uint32_t places() const;

  [[nodiscard]] bool shares_cores() const { return places() < local_tasks(); }

  [[nodiscard]] base::Distribution distribution() const {
    return static_cast<base::Distribution>(prepare.distribution());
  }

  // [rank in the world]: the index of its node.
  [[nodiscard]] std::vector<std::uint32_t> nodes_of_ranks() const;

  // [number in the job]: the index of its node.
  [[nodiscard]] std::vector<std::uint32_t> nodes_of_tasks() const;

  // [node index]: members of the world.
  [[nodiscard]] std::vector<std::uint32_t> members_on_node() const;

  // The name of the world in PMI and PMIx, the same on all nodes. MPI libraries name shared
  // memory after it, so it differs between the clusters of one host. No blanks.
  [[nodiscard]] std::string key_space() const { return key_space_of(world()); }

  [[nodiscard]] std::string key_space_of(std::uint32_t world) const;

  // See choose_mpi().
  [[nodiscard]] bool wants_pmi() const {
    return spec.mpi() == wire::LaunchSpec::PMI1 || spec.mpi() == wire::LaunchSpec::BOTH;
  }

  [[nodiscard]] bool wants_pmix() const {
    return spec.mpi() == wire::LaunchSpec::PMIX || spec.mpi() == wire::LaunchSpec::BOTH;
  }

  // Its tasks may open PM. A batch script computes in its steps, which have networks of their own.
  [[nodiscard]] bool wants_network() const {
    const bool computes = spec.script().empty() || spec.net() == wire::LaunchSpec::PM;
    return !spec.scout() && computes;
  }

  // Rank 0 has a terminal, and it is here.
  [[nodiscard]] bool has_terminal(std::uint32_t task) const {
    return spec.pty() && rank_of(task) == 0;
  }

  // The task reads what the front end sends.
  [[nodiscard]] bool takes_input(std::uint32_t task) const;
};

// Errors: Malformed (not the message, no tasks here, node index outside, empty argv, programs whose
// tasks are not the world's), TooLarge (limits of base/limits.hpp).
base::Result<Plan> parse_plan(std::string_view payload);

// The plan of a world that programs of `job` start. Errors: as parse_plan().
base::Result<Plan> plan_of_world(const Plan& job, const wire::SpawnedWorld& world);

// ShepherdPrepare, as the plan has become.
std::string prepare_bytes(const Plan& plan);

// Value of `name` in the program's environment or else the job's, a view into the spec.
std::optional<std::string_view> find_variable(const wire::LaunchSpec& spec,
                                              const wire::Program& program, std::string_view name);

}  // namespace score::shepherd
