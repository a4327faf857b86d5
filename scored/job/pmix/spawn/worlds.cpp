// This module is tested by test_spawn.py, because it needs real PMIx clients.
#include "scored/job/pmix/spawn/worlds.hpp"

#include <pmix.h>

#include <algorithm>
#include <numeric>

namespace score::pmix {

void Worlds::add(const shepherd::Plan& plan) {
  World world{plan.key_space(), {}};
  const auto is_it = [&](const World& known) { return known.name == world.name; };
  if (std::ranges::any_of(worlds_, is_it)) return;
  const auto& places = plan.prepare.world().places();
  world.numbers.assign(places.begin(), places.end());
  if (plan.world() == 0) {
    world.numbers.resize(plan.size);
    std::iota(world.numbers.begin(), world.numbers.end(), 0U);
  }
  worlds_.push_back(std::move(world));
}

const Worlds::World* Worlds::find(const pmix_proc_t& process) const {
  const auto is_it = [&](const World& world) {
    return PMIX_CHECK_NSPACE(process.nspace, world.name.c_str());
  };
  const auto found = std::ranges::find_if(worlds_, is_it);
  return found == worlds_.end() ? nullptr : &*found;
}

std::optional<std::uint32_t> Worlds::number_of(const pmix_proc_t& process) const {
  const World* world = find(process);
  if (world == nullptr || process.rank >= world->numbers.size()) return std::nullopt;
  return world->numbers[process.rank];
}

std::optional<std::vector<std::uint32_t>> Worlds::numbers_of(
    std::span<const pmix_proc_t> processes) const {
  std::vector<std::uint32_t> numbers;
  for (const auto& process : processes) {
    const World* world = find(process);
    if (world == nullptr) return std::nullopt;
    if (process.rank == PMIX_RANK_WILDCARD) {
      numbers.insert(numbers.end(), world->numbers.begin(), world->numbers.end());
    } else if (process.rank < world->numbers.size()) {
      numbers.push_back(world->numbers[process.rank]);
    } else {
      return std::nullopt;
    }
  }
  std::ranges::sort(numbers);
  const auto repeats = std::ranges::unique(numbers);
  numbers.erase(repeats.begin(), repeats.end());
  return numbers;
}

pmix_proc_t Worlds::process_of(std::uint32_t number) const {
  pmix_proc_t process;
  PMIX_LOAD_PROCID(&process, "", PMIX_RANK_UNDEF);
  for (const World& world : worlds_) {
    const auto at = std::ranges::lower_bound(world.numbers, number);
    if (at == world.numbers.end() || *at != number) continue;
    PMIX_LOAD_PROCID(&process, world.name.c_str(),
                     static_cast<pmix_rank_t>(at - world.numbers.begin()));
  }
  return process;
}

}  // namespace score::pmix
