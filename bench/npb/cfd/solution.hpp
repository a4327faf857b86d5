// What LU, SP and BT have in common: the state at all points of a rank, how far it is from solving
// the equations, and how far from their exact solution.
#pragma once

#include "bench/npb/cfd/flow.hpp"
#include "bench/npb/cfd/partition.hpp"
#include "bench/npb/cfd/problems.hpp"
#include "bench/npb/kernel.hpp"

#include <string>
#include <vector>

namespace score::npb::cfd {

class Solution {
 public:
  // `among` outlives this.
  Solution(const Problem& of, const Partition& parts, Communicator& among);

  // To the initial state.
  void reset();
  // change = factor * (the right side of the equations at the present state), primitive = that of
  // the present state. Collective.
  void find_change(double factor);
  // state += factor * change.
  void advance(double factor);

  // Compares the norms with what was published. Collective; the last find_change() had the factor
  // 1. The same on all ranks.
  [[nodiscard]] Verdict verify();

  const Problem problem;
  const Scheme scheme;
  Partition partition;
  Communicator& network;
  // [cell of this rank]
  std::vector<Field<State>> state;          // with a border of kBorder points
  std::vector<Field<Primitive>> primitive;  // with a border of one point
  std::vector<Field<State>> change;         // with a border of one point, where it stays 0

 private:
  void add_right_side(std::size_t cell, Field<State>& to) const;
  template <std::size_t D>
  void add_terms(std::size_t cell, Field<State>& to) const;
  void find_primitives(std::size_t cell);
  template <class Value>
  void fill(Value value_at);
  State residual_norm();
  State error_norm();
  State norm(const State& squares);

  std::vector<Field<State>> forcing_;  // so that the exact solution solves the equations
};

}  // namespace score::npb::cfd
