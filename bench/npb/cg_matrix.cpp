#include "bench/npb/cg_matrix.hpp"

#include "bench/npb/random.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

namespace score::npb {

namespace {

constexpr double kCondition = 0.1;  // reciprocal

struct Element {
  std::uint32_t index;
  double value;
};

using SparseVector = std::vector<Element>;

struct Entry {
  std::uint32_t row, column;
  double value;
};

// Makes a vector of random values at random positions; position `row` gets 0.5.
SparseVector random_vector(Random& random, const CgProblem& problem, std::uint32_t row) {
  const std::uint32_t range = std::bit_ceil(problem.rows);
  SparseVector vector;
  const auto find = [&](std::uint32_t index) {
    return std::find_if(vector.begin(), vector.end(),
                        [index](const Element& e) { return e.index == index; });
  };
  while (vector.size() < problem.nonzeros) {
    const double value = random.next();
    const auto index = static_cast<std::uint32_t>(range * random.next());
    if (index < problem.rows && find(index) == vector.end()) vector.push_back({index, value});
  }
  if (const auto own = find(row); own != vector.end()) {
    own->value = 0.5;
  } else {
    vector.push_back({row, 0.5});
  }
  return vector;
}

SparseMatrix compress(std::vector<Entry>& entries, const CgBlock& block) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.row, a.column) < std::tie(b.row, b.column);
  });
  SparseMatrix matrix;
  matrix.starts.assign(block.rows + 1, 0);
  const Entry* before = nullptr;
  for (const Entry& entry : entries) {
    if (before != nullptr && before->row == entry.row && before->column == entry.column) {
      matrix.values.back() += entry.value;
    } else {
      matrix.columns.push_back(entry.column);
      matrix.values.push_back(entry.value);
    }
    matrix.starts[entry.row + 1] = static_cast<std::uint32_t>(matrix.values.size());
    before = &entry;
  }
  for (std::uint32_t row = 0; row < block.rows; ++row) {
    matrix.starts[row + 1] = std::max(matrix.starts[row + 1], matrix.starts[row]);
  }
  return matrix;
}

}  // namespace

const CgProblem* cg_problem(char size) {
  static constexpr CgProblem kS{1400, 7, 15, 10, 8.5971775078648};
  static constexpr CgProblem kW{7000, 8, 15, 12, 10.362595087124};
  static constexpr CgProblem kA{14000, 11, 15, 20, 17.130235054029};
  static constexpr CgProblem kB{75000, 13, 75, 60, 22.712745482631};
  switch (size) {
    case 'S':
      return &kS;
    case 'W':
      return &kW;
    case 'A':
      return &kA;
    case 'B':
      return &kB;
    default:
      return nullptr;
  }
}

SparseMatrix make_cg_matrix(const CgProblem& problem, const CgBlock& block) {
  Random random(Random::kSeed, 1);  // the specification draws one number before
  const double ratio = std::pow(kCondition, 1.0 / problem.rows);
  double weight = 1;
  std::vector<Entry> entries;
  for (std::uint32_t i = 0; i < problem.rows; ++i, weight *= ratio) {
    const SparseVector vector = random_vector(random, problem, i);
    for (const Element& left : vector) {
      const std::uint32_t row = left.index - block.first_row;  // wraps if it lies before
      if (row >= block.rows) continue;
      for (const Element& right : vector) {
        const std::uint32_t column = right.index - block.first_column;
        if (column >= block.columns) continue;
        const bool is_own = left.index == i && right.index == i;
        const double diagonal = is_own ? kCondition - problem.shift : 0;
        entries.push_back({row, column, left.value * weight * right.value + diagonal});
      }
    }
  }
  return compress(entries, block);
}

}  // namespace score::npb
