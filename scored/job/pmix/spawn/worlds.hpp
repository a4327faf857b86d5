#pragma once
// Tracks the MPI worlds of a job. PMIx names a process by the name space of its world and its rank
// there; the rest of the job uses its number in the job.

#include "scored/job/plan/plan.hpp"

#include <pmix_common.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace score::pmix {

class Worlds {
 public:
  // Adds the plan's world. Does nothing if the world is already known.
  void add(const shepherd::Plan& plan);

  // Returns the process's number in the job, or nullopt for a process of a different job.
  [[nodiscard]] std::optional<std::uint32_t> number_of(const pmix_proc_t& process) const;
  // Expands a wildcard rank to all of its world. Returns nullopt if any process is of a different
  // job.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> numbers_of(
      std::span<const pmix_proc_t> processes) const;
  // Returns an undefined rank for a number that is in no world.
  [[nodiscard]] pmix_proc_t process_of(std::uint32_t number) const;

 private:
  struct World {
    std::string name;
    std::vector<std::uint32_t> numbers;  // [rank in the world], ascending
  };

  [[nodiscard]] const World* find(const pmix_proc_t& process) const;

  std::vector<World> worlds_;
};

}  // namespace score::pmix
