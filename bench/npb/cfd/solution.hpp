// Holds the common part of LU, SP and BT: the state at all points of a rank, and its distances from
// a solution of the equations and from the exact solution.
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
  // `among` must outlive the object.
  Solution(const Problem& of, const Partition& parts, Communicator& among);

  // Sets the initial state.
  void reset();
  // Computes change = factor * (the right side of the equations at the present state), and sets
  // `primitive` to the values of the present state. Collective.
  void find_change(double factor);
  // Adds factor * change to the state.
  void advance(double factor);

  // Compares the norms with the published ones. Collective; the last find_change() must have had
  // the factor 1. Returns the same on all ranks.
  [[nodiscard]] Verdict verify();

  const Problem problem;
  const Scheme scheme;
  Partition partition;
  Communicator& network;
  // The index of these is the cell of this rank.
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

  std::vector<Field<State>> forcing_;  // makes the exact solution solve the equations
};

}  // namespace score::npb::cfd
