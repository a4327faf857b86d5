#pragma once
// The units of generic resources of all nodes, and the rows in which jobs have them: a shared unit
// is taken in a row like a core, so jobs that have it take turns.

#include "gang/matrix/matrix.hpp"
#include "gang/resources/unit_book.hpp"
#include "gang/state/job_table.hpp"
#include "gang/state/node_table.hpp"

#include <optional>
#include <span>
#include <vector>

namespace score::gang {

class Units {
 public:
  Units(const NodeTable& nodes, Matrix& matrix) : nodes_(nodes), matrix_(matrix) {}

  // After NodeTable::add().
  void add_node() { books_.emplace_back(); }

  // Could the job have its units of the node in this row, so that `kept` of each kind remain?
  // nullopt: in a row of its own.
  [[nodiscard]] bool has_room(const Job& job, NodeIndex node, std::optional<std::size_t> row,
                              std::span<const base::GenericResource> kept = {}) const;

  // Chooses units for a job whose nodes are known, for which has_room() holds in this row: fills
  // in its units and its cells' unit bits.
  void choose(Job& job, std::size_t row);
  // The units are known, as after a restart of the head: fills in the unit bits alone.
  void restore(Job& job);

  // For a job with units; else nothing happens.
  void take(const Job& job);
  void give_back(const Job& job);

  [[nodiscard]] const UnitBook& on_node(NodeIndex node) const { return books_[node]; }

  // Everything is computed anew from the jobs and compared with what is kept.
  [[nodiscard]] base::Result<void> check(const JobTable& jobs) const;

 private:
  const NodeTable& nodes_;
  Matrix& matrix_;
  std::vector<UnitBook> books_;  // [node]
};

}  // namespace score::gang
