// Implements CG: computes the smallest eigenvalue of a sparse matrix by inverse iteration, with 25
// steps of the method of conjugate gradients for each. The matrix is divided into blocks, [row of
// ranks][column of ranks], with as many columns as rows or twice as many. A vector is divided among
// the columns; all ranks of a column have the same part. A product therefore needs a sum over each
// row of ranks, and one exchange with the rank at the transposed position.
#include "bench/npb/cg_matrix.hpp"
#include "bench/npb/kernel.hpp"

#include <bit>
#include <cmath>

namespace score::npb {

namespace {

constexpr int kSteps = 25;
constexpr double kTolerance = 1e-10;

// Describes the position of this rank in the grid of ranks.
struct Grid {
  Rank rows, columns;  // of ranks
  Rank row, column;    // own
  Rank partner;        // at the transposed position; may be this rank itself

  static Grid of(Rank rank, Rank size) {
    Grid g{};
    const auto log = static_cast<unsigned>(std::countr_zero(size));
    g.rows = Rank{1} << log / 2;
    g.columns = size / g.rows;
    g.row = rank / g.columns;
    g.column = rank % g.columns;
    // With two columns for each row, the partner's row is half of the own column, and vice versa.
    const Rank ratio = g.columns / g.rows;
    g.partner = g.column / ratio * g.columns + g.row * ratio + g.column % ratio;
    return g;
  }
};

class Cg final : public Kernel {
 public:
  Cg(const CgProblem& problem, Communicator& network, int threads)
      : problem_(problem),
        network_(network),
        threads_(threads),
        grid_(Grid::of(network.rank(), network.size())),
        rows_(problem.rows / grid_.rows),
        columns_(problem.rows / grid_.columns),
        matrix_(
            make_cg_matrix(problem, {grid_.row * rows_, rows_, grid_.column * columns_, columns_})),
        x_(columns_),
        z_(columns_),
        p_(columns_),
        q_(columns_),
        r_(columns_),
        w_(rows_) {}

  void prepare() override { x_.assign(columns_, 1.0); }

  void run(Meter& meter) override {
    for (std::uint32_t i = 0; i < problem_.iterations; ++i) {
      solve(meter);
      const double shift_inverse = dot(x_, z_);
      const double scale = 1 / std::sqrt(dot(z_, z_));
      zeta_ = problem_.shift + 1 / shift_inverse;
      for (std::uint32_t k = 0; k < columns_; ++k) x_[k] = scale * z_[k];
    }
  }

  Verdict verify() override {
    return {is_close(zeta_, problem_.zeta, kTolerance), compared("zeta", zeta_, problem_.zeta)};
  }

 private:
  using Vector = std::vector<double>;

  // Sets z_ to an approximate solution of A z = x.
  void solve(Meter& meter) {
    z_.assign(columns_, 0.0);
    p_ = r_ = x_;
    double rho = dot(r_, r_);
    for (int step = 0; step < kSteps; ++step) {
      multiply();
      const double alpha = rho / dot(p_, q_);
      for (std::uint32_t k = 0; k < columns_; ++k) {
        z_[k] += alpha * p_[k];
        r_[k] -= alpha * q_[k];
      }
      const double before = rho;
      rho = dot(r_, r_);
      const double beta = rho / before;
      for (std::uint32_t k = 0; k < columns_; ++k) p_[k] = r_[k] + beta * p_[k];
      meter.tick();
    }
  }

  // Computes q = A p.
  void multiply() {
#pragma omp parallel for num_threads(threads_) if (threads_ > 1) schedule(static)
    for (std::uint32_t i = 0; i < rows_; ++i) w_[i] = matrix_.row_times(i, p_.data());
    sum_over_row(w_);
    // The partner needs one part of the rows, and has the rows that are the own columns.
    const std::size_t part = grid_.column % (grid_.columns / grid_.rows);
    const std::span<const double> wanted = std::span(w_).subspan(part * columns_, columns_);
    if (grid_.partner == network_.rank()) {
      q_.assign(wanted.begin(), wanted.end());
    } else {
      exchange(network_, grid_.partner, wanted, std::span(q_));
    }
  }

  // Computes the sums over the ranks of the own row.
  void sum_over_row(std::span<double> values) {
    network_.sum_among(grid_.row * grid_.columns, grid_.columns, values);
  }

  double dot(const Vector& a, const Vector& b) {
    double sum = 0;
    for (std::uint32_t k = 0; k < columns_; ++k) sum += a[k] * b[k];
    sum_over_row({&sum, 1});
    return sum;
  }

  const CgProblem& problem_;
  Communicator& network_;
  int threads_;
  Grid grid_;
  std::uint32_t rows_, columns_;  // of the own block
  SparseMatrix matrix_;
  Vector x_, z_, p_, q_, r_;  // own columns
  Vector w_;                  // own rows
  double zeta_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> make_cg(char size, Communicator& network, int threads) {
  const CgProblem* problem = cg_problem(size);
  return problem != nullptr ? std::make_unique<Cg>(*problem, network, threads) : nullptr;
}

}  // namespace score::npb
