// Implements Linpack: a dense system of equations is solved by LU factorisation with partial
// pivoting. Blocks of columns are distributed over the ranks in turn (column-cyclic). The owner of
// a block factors it and passes it round a ring, rank to next rank, so that neighbours in rank are
// neighbours on the network. Inside a rank threads share the columns of the update; only the first
// of them communicates.
#pragma once

#include "bench/npb/communicator.hpp"

#include <cstdint>
#include <vector>

namespace score::cosmo {

using npb::Communicator;
using npb::Rank;

class Linpack {
 public:
  static constexpr std::size_t kBlock = 32;  // columns

  // `n` is the number of equations. `network` must outlive the object.
  Linpack(std::size_t n, int threads, Communicator& network);

  // Makes a random matrix, the same for any number of ranks. Collective, like all other functions.
  void prepare();
  // Computes the factors, then the solution; this is the timed part. Returns false if the matrix is
  // singular.
  bool run();
  // Returns |A x - b| / (eps n |A| |x|), all in the maximum norm. Below 16 it is right (HPL's
  // test).
  [[nodiscard]] double residual();

  static constexpr double kRightBelow = 16;

  // Returns the number of operations of the factorisation and the solution.
  [[nodiscard]] double operations() const {
    const auto n = static_cast<double>(n_);
    return 2.0 / 3 * n * n * n + 2 * n * n;
  }

 private:
  using Vector = std::vector<double>;

  // Holds the message that the owner of a block passes on: its columns below and on the diagonal,
  // column by column, and the rows that were exchanged.
  struct Panel {
    std::size_t first = 0, width = 0, height = 0;
    Vector columns;  // [width][height], then the pivots, as numbers

    [[nodiscard]] double* column(std::size_t j) { return &columns[j * height]; }

    [[nodiscard]] double* pivots() { return &columns[width * height]; }
  };

  [[nodiscard]] Rank owner_of(std::size_t block) const {
    return static_cast<Rank>(block % network_.size());
  }

  // Returns the own column with this global number.
  [[nodiscard]] double* column(std::size_t global);

  void fill(Vector& out, std::size_t global) const;
  [[nodiscard]] bool factor(Panel& panel);
  void pass_round(Panel& panel, Rank owner);
  void update(Panel& panel);
  void exchange_rows(double* values, Panel& panel) const;
  void solve();

  std::size_t n_;
  int threads_;
  Communicator& network_;
  std::vector<std::size_t> own_;  // global numbers of own columns, ascending
  Vector matrix_;                 // [own column][row]
  Vector right_;                  // b, then y, then x; the same on all ranks
};

}  // namespace score::cosmo
