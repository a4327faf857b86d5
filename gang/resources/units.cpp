// This file is tested by gres_test.cpp.
#include "gang/resources/units.hpp"

#include "base/assert.hpp"

#include <set>
#include <tuple>

namespace score::gang {

using base::Errc;
using base::fail;

bool Units::has_room(const Job& job, NodeIndex node, std::optional<std::size_t> row,
                     std::span<const base::GenericResource> kept) const {
  const Generic& wanted = job.request.generic;
  if (wanted.empty() || job.is_step()) return true;
  const auto test = [&](const std::string& name, std::uint32_t index) {
    return !row || matrix_.is_unit_free(*row, {node, name, index});
  };
  return registries_[node].choose({nodes_[node].info.generic, wanted, kept}, test).has_value();
}

void Units::choose(Job& job, std::size_t row) {
  job.units.clear();
  job.cells.unit_bits.clear();
  if (job.request.generic.empty() || job.is_step()) return;
  for (const NodeIndex node : job.cells.nodes) {
    const auto test = [&](const std::string& name, std::uint32_t index) {
      return matrix_.is_unit_free(row, {node, name, index});
    };
    auto shares = registries_[node].choose({nodes_[node].info.generic, job.request.generic}, test);
    SCORE_ASSERT(shares.has_value(), "job={} node={}", job.id, node);
    job.units.push_back(*std::move(shares));
  }
  restore(job);
}

void Units::restore(Job& job) {
  job.cells.unit_bits.clear();
  if (job.is_step()) return;  // they belong to its job
  for (std::size_t m = 0; m < job.units.size(); ++m) {
    for (const base::GenericShare& share : job.units[m]) {
      for (const std::uint32_t index : share.indices) {
        job.cells.unit_bits.push_back(matrix_.unit_bit({job.cells.nodes[m], share.name, index}));
      }
    }
  }
}

void Units::take(const Job& job) {
  if (job.is_step()) return;
  for (std::size_t m = 0; m < job.units.size(); ++m) {
    registries_[job.cells.nodes[m]].take(job.id, job.units[m], job.request.generic);
  }
}

void Units::give_back(const Job& job) {
  if (job.is_step()) return;
  for (std::size_t m = 0; m < job.units.size(); ++m)
    registries_[job.cells.nodes[m]].give_back(job.id);
}

// No unit may have two jobs in a row. A connected node must have what its jobs have, unless it came
// back with less; then they are ending.
base::Result<void> Units::check(const JobTable& jobs) const {
  std::vector<std::map<std::string, std::set<std::uint32_t>>> used(registries_.size());
  std::set<std::tuple<RowId, std::size_t>> taken;
  std::set<NodeIndex> ending;
  for (const auto& [id, job] : jobs.all()) {
    if (!job.placed) continue;
    const bool is_whole = job.request.generic.empty() || job.units.size() == job.cells.nodes.size();
    if (!is_whole) return fail(Errc::WrongState, "job {} lacks units", id);
    if (job.is_step()) continue;
    for (const std::size_t bit : job.cells.unit_bits) {
      if (!taken.emplace(job.home, bit).second) {
        return fail(Errc::WrongState, "a unit of job {} is used twice in its row", id);
      }
    }
    for (std::size_t m = 0; m < job.units.size(); ++m) {
      if (job.state == JobState::Completing) ending.insert(job.cells.nodes[m]);
      for (const auto& share : job.units[m]) {
        used[job.cells.nodes[m]][share.name].insert(share.indices.begin(), share.indices.end());
      }
    }
  }
  for (NodeIndex node = 0; node < registries_.size(); ++node) {
    Generic counted;
    for (const auto& [name, units] : used[node]) {
      counted.push_back({name, static_cast<std::uint32_t>(units.size())});
    }
    if (registries_[node].in_use() != counted) {
      return fail(Errc::WrongState, "units of {} are counted wrongly", nodes_.name(node));
    }
    if (!nodes_[node].seen || !nodes_[node].connected || ending.contains(node)) continue;
    if (auto sane = registries_[node].check(nodes_[node].info.generic); !sane) {
      return sane.error().with_context("{}", nodes_.name(node));
    }
  }
  return {};
}

}  // namespace score::gang
