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

struct Plan {
  wire::ShepherdPrepare prepare;
  wire::LaunchSpec spec;
  std::uint32_t size = 0;            // ranks of the whole job
  std::vector<std::uint32_t> ranks;  // of this node's tasks, ascending

  [[nodiscard]] std::uint32_t node_count() const {
    return static_cast<std::uint32_t>(prepare.tasks_on_node_size());
  }

  [[nodiscard]] std::uint32_t local_tasks() const {
    return prepare.tasks_on_node(static_cast<int>(prepare.node_index()));
  }

  [[nodiscard]] std::uint32_t rank_of(std::uint32_t task) const { return ranks[task]; }

  // How many tasks this node has cores for: as many as it has, or fewer, if they share them.
  [[nodiscard]] std::uint32_t places() const;

  [[nodiscard]] bool shares_cores() const { return places() < local_tasks(); }

  [[nodiscard]] base::Distribution distribution() const {
    return static_cast<base::Distribution>(prepare.distribution());
  }

  // [rank]: the index of its node.
  [[nodiscard]] std::vector<std::uint32_t> nodes_of_ranks() const;

  // The name of this attempt in PMI and PMIx, the same on all its nodes. MPI libraries name shared
  // memory after it, so it differs between the clusters of one host. No blanks.
  [[nodiscard]] std::string key_space() const;

  // Not both; see choose_mpi().
  [[nodiscard]] bool wants_pmi() const { return spec.mpi() == wire::LaunchSpec::PMI1; }

  [[nodiscard]] bool wants_pmix() const { return spec.mpi() == wire::LaunchSpec::PMIX; }

  // Its tasks may open PM.
  [[nodiscard]] bool wants_network() const { return !spec.scout(); }

  // Rank 0 has a terminal, and it is here.
  [[nodiscard]] bool has_terminal(std::uint32_t task) const {
    return spec.pty() && rank_of(task) == 0;
  }

  // The task reads what the front end sends.
  [[nodiscard]] bool takes_input(std::uint32_t task) const;
};

// Errors: Malformed (not the message, no tasks here, node index outside, empty argv), TooLarge
// (limits of base/limits.hpp).
base::Result<Plan> parse_plan(std::string_view payload);

// Value of `name` in the job's environment, a view into the spec.
std::optional<std::string_view> find_variable(const wire::LaunchSpec& spec, std::string_view name);

}  // namespace score::shepherd
