#pragma once
// Makes the variables with Slurm's names that describe a job to its script and its tasks. Pure.

#include "base/ids.hpp"
#include "base/units.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace score::inline base {

// A value that is not known stays empty, and its variable is left out.
struct SlurmJob {
  std::uint64_t job = 0;
  std::string name;
  std::string nodes;                         // a host list
  std::vector<std::uint32_t> tasks_on_node;  // [node index]
  std::vector<std::uint32_t> cores_on_node;  // [node index]; empty: as the tasks need
  std::uint32_t cpus_per_task = 1;
  Bytes memory_per_node{0};  // 0: not limited
  std::string partition;
  std::string cluster;
  std::string account;
  UserId user{0};
  std::string user_name;
  std::uint32_t restarts = 0;
};

// Returns "NAME=value" for the variables that all tasks and steps of the job have.
[[nodiscard]] std::vector<std::string> slurm_job_variables(const SlurmJob& job);

// Returns counts in Slurm's short form: "2(x3),1".
[[nodiscard]] std::string slurm_counts(std::span<const std::uint32_t> counts);

}  // namespace score::inline base
