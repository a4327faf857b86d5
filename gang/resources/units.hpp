#pragma once
// Units holds the units of generic resources of all nodes, and the rows in which jobs have them. A
// shared unit is taken in a row like a core, so the jobs that have it take turns.

#include "gang/matrix/matrix.hpp"
#include "gang/resources/unit_registry.hpp"
#include "gang/state/job_table.hpp"
#include "gang/state/node_table.hpp"

#include <optional>
#include <span>
#include <vector>

namespace score::gang {

class Units {
 public:
  Units(const NodeTable& nodes, Matrix& matrix) : nodes_(nodes), matrix_(matrix) {}

  // Must follow NodeTable::add().
  void add_node() { registries_.emplace_back(); }

  // Returns whether the job could have its units of the node in this row, so that `kept` of each
  // kind remain. With nullopt it is in a new row.
  [[nodiscard]] bool has_room(const Job& job, NodeIndex node, std::optional<std::size_t> row,
                              std::span<const base::GenericResource> kept = {}) const;

  // Chooses units for a job whose nodes are known, and fills in its units and its cells' unit bits.
  // has_room() must hold in this row.
  void choose(Job& job, std::size_t row);
  // Fills in only the unit bits; the units are known, as after a restart of the head.
  void restore(Job& job);

  // Takes the units of the job; does nothing for a job without units.
  void take(const Job& job);
  void give_back(const Job& job);

  [[nodiscard]] const UnitRegistry& on_node(NodeIndex node) const { return registries_[node]; }

  // Computes everything again from the jobs and compares the result with the stored values.
  [[nodiscard]] base::Result<void> check(const JobTable& jobs) const;

 private:
  const NodeTable& nodes_;
  Matrix& matrix_;
  std::vector<UnitRegistry> registries_;  // [node]
};

}  // namespace score::gang
