#pragma once
// The MPI worlds of a job: PMIx names a process by its world's name space and its rank there, the
// rest of the job by its number in the job.

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
  // One that is known already: nothing.
  void add(const shepherd::Plan& plan);

  // Nothing: of another job.
  [[nodiscard]] std::optional<std::uint32_t> number_of(const pmix_proc_t& process) const;
  // A wildcard rank means all of its world. Nothing if one of them is of another job.
  [[nodiscard]] std::optional<std::vector<std::uint32_t>> numbers_of(
      std::span<const pmix_proc_t> processes) const;
  // Of a number that is in no world: an undefined rank.
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
