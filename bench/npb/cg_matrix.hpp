// Makes the matrix of CG: sparse, symmetric, of random pattern. It is the sum of outer products of
// sparse random vectors, weighted by a geometric series, so that its condition is known
// (RNR-94-007, 2.4.1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace score::npb {

struct CgProblem {
  std::uint32_t rows;
  std::uint32_t nonzeros;  // of each random vector
  std::uint32_t iterations;
  double shift;
  double zeta;  // published
};

// Selects rows [first_row, first_row + rows) and columns [first_column, ...) of the matrix.
struct CgBlock {
  std::uint32_t first_row, rows;
  std::uint32_t first_column, columns;
};

// Stores compressed rows; indices are relative to the block.
struct SparseMatrix {
  std::vector<std::uint32_t> starts;  // [row], one more at the end
  std::vector<std::uint32_t> columns;
  std::vector<double> values;

  [[nodiscard]] std::size_t rows() const { return starts.size() - 1; }

  // Returns the product of row `row` and `vector`, which is as long as the block has columns.
  [[nodiscard]] double row_times(std::size_t row, const double* vector) const {
    double sum = 0;
    for (std::uint32_t i = starts[row]; i < starts[row + 1]; ++i) {
      sum += values[i] * vector[columns[i]];
    }
    return sum;
  }
};

SparseMatrix make_cg_matrix(const CgProblem& problem, const CgBlock& block);

// Returns the problem of class S, W, A or B; null for other classes.
const CgProblem* cg_problem(char size);

}  // namespace score::npb
