#include "gang/resources/unit_registry.hpp"

#include <algorithm>
#include <utility>

namespace score::gang {

using base::Errc;
using base::fail;

namespace {

const base::GenericResource* find_kind(std::span<const base::GenericResource> kinds,
                                       const std::string& name) {
  const auto found = std::ranges::find(kinds, name, &base::GenericResource::name);
  return found == kinds.end() ? nullptr : &*found;
}

base::Bytes part_of(const base::GenericResource& kind, base::Bytes memory) {
  return memory > base::Bytes{0} ? memory : kind.memory;
}

}  // namespace

bool offers(std::span<const base::GenericResource> offered,
            std::span<const base::GenericResource> wanted) {
  return std::ranges::all_of(wanted, [&](const base::GenericResource& want) {
    const auto* kind = find_kind(offered, want.name);
    return kind != nullptr && kind->count >= want.count && kind->memory >= want.memory;
  });
}

std::span<const UnitRegistry::Holder> UnitRegistry::holders(const std::string& name,
                                                            std::uint32_t index) const {
  const auto kind = units_.find(name);
  if (kind == units_.end()) return {};
  const auto unit = kind->second.find(index);
  if (unit == kind->second.end()) return {};
  return unit->second;
}

bool UnitRegistry::may_take(const base::GenericResource& kind, std::uint32_t index,
                            base::Bytes memory) const {
  const auto there = holders(kind.name, index);
  if (!kind.shared) return there.empty();
  base::Bytes used = part_of(kind, memory);
  for (const Holder& holder : there) used += part_of(kind, holder.memory);
  return kind.memory == base::Bytes{0} || used <= kind.memory;
}

std::optional<Shares> UnitRegistry::choose(const UnitDemand& demand, const Test& test) const {
  if (!offers(demand.offered, demand.wanted)) return std::nullopt;
  Shares shares;
  for (const base::GenericResource& want : demand.wanted) {
    const base::GenericResource& kind = *find_kind(demand.offered, want.name);
    std::vector<std::pair<std::size_t, std::uint32_t>> free;  // jobs on it, number
    for (std::uint32_t index = 0; index < kind.count; ++index) {
      if (!may_take(kind, index, want.memory) || !test(kind.name, index)) continue;
      free.emplace_back(holders(kind.name, index).size(), index);
    }
    const auto* kept = find_kind(demand.kept, want.name);
    if (free.size() < want.count + std::size_t{kept != nullptr ? kept->count : 0}) {
      return std::nullopt;
    }
    std::ranges::sort(free);
    base::GenericShare share{want.name, {}};
    for (std::uint32_t i = 0; i < want.count; ++i) share.indices.push_back(free[i].second);
    std::ranges::sort(share.indices);
    shares.push_back(std::move(share));
  }
  return shares;
}

void UnitRegistry::take(base::JobId job, const Shares& shares,
                        std::span<const base::GenericResource> wanted) {
  for (const base::GenericShare& share : shares) {
    const auto* want = find_kind(wanted, share.name);
    const base::Bytes memory = want != nullptr ? want->memory : base::Bytes{0};
    for (const std::uint32_t index : share.indices) {
      units_[share.name][index].push_back({job, memory});
    }
  }
}

void UnitRegistry::give_back(base::JobId job) {
  for (auto& [name, units] : units_) {
    for (auto& [index, there] : units) {
      std::erase_if(there, [job](const Holder& holder) { return holder.job == job; });
    }
    std::erase_if(units, [](const auto& unit) { return unit.second.empty(); });
  }
  std::erase_if(units_, [](const auto& kind) { return kind.second.empty(); });
}

Generic UnitRegistry::in_use() const {
  Generic out;
  for (const auto& [name, units] : units_) {
    out.push_back({name, static_cast<std::uint32_t>(units.size())});
  }
  return out;
}

base::Result<void> UnitRegistry::check(std::span<const base::GenericResource> offered) const {
  for (const auto& [name, units] : units_) {
    const auto* kind = find_kind(offered, name);
    for (const auto& [index, there] : units) {
      if (kind == nullptr || index >= kind->count) {
        return fail(Errc::WrongState, "job {} has {} {}, which does not exist", there[0].job, name,
                    index);
      }
      if (there.size() > 1 && !kind->shared) {
        return fail(Errc::WrongState, "jobs {} and {} have {} {}", there[0].job, there[1].job, name,
                    index);
      }
      base::Bytes used{0};
      for (const Holder& holder : there) used += part_of(*kind, holder.memory);
      if (used > kind->memory && kind->memory > base::Bytes{0}) {
        return fail(Errc::WrongState, "{} of memory of {} {} are in use; it has {}",
                    base::human_bytes(used), name, index, base::human_bytes(kind->memory));
      }
    }
  }
  return {};
}

}  // namespace score::gang
