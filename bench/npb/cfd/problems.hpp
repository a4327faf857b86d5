// Lists the sizes of LU, SP and BT and their published results.
#pragma once

#include "bench/npb/cfd/flow.hpp"

namespace score::npb::cfd {

struct Problem {
  char size;   // its class
  int points;  // along each dimension
  int steps;
  double dt;
  State residual, error;  // published norms
  double surface = 0;     // published integral of the pressure, for LU
};

// Each returns null if the class does not exist here.
const Problem* lu_problem(char size);
const Problem* sp_problem(char size);
const Problem* bt_problem(char size);

}  // namespace score::npb::cfd
