// The sizes of LU, SP and BT and what was published for them.
#pragma once

#include "bench/npb/cfd/flow.hpp"

namespace score::npb::cfd {

struct Problem {
  char size;   // its class
  int points;  // along each dimension
  int steps;
  double dt;
  State residual, error;  // published norms
  double surface = 0;     // of LU: published integral of the pressure
};

// Null: there is no such class here.
const Problem* lu_problem(char size);
const Problem* sp_problem(char size);
const Problem* bt_problem(char size);

}  // namespace score::npb::cfd
