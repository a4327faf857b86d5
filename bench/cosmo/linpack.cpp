#include "bench/cosmo/linpack.hpp"

#include "bench/npb/random.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace score::cosmo {

Linpack::Linpack(std::size_t n, int threads, Communicator& network)
    : n_(n), threads_(threads), network_(network) {
  for (std::size_t j = 0; j < n; ++j) {
    if (owner_of(j / kBlock) == network.rank()) own_.push_back(j);
  }
  matrix_.resize(own_.size() * n);
}

// Fills a column from its own position in one sequence of random numbers; column n is b.
void Linpack::fill(Vector& out, std::size_t global) const {
  npb::Random random(npb::Random::kSeed, global * n_);
  out.resize(n_);
  for (double& value : out) value = random.next() - 0.5;
}

void Linpack::prepare() {
  Vector values;
  for (std::size_t i = 0; i < own_.size(); ++i) {
    fill(values, own_[i]);
    std::copy(values.begin(), values.end(), &matrix_[i * n_]);
  }
  fill(right_, n_);
}

double* Linpack::column(std::size_t global) {
  const auto place = std::lower_bound(own_.begin(), own_.end(), global) - own_.begin();
  return &matrix_[static_cast<std::size_t>(place) * n_];
}

// ---- factoring ----------------------------------------------------------------------------------

bool Linpack::run() {
  bool is_regular = true;
  for (std::size_t first = 0; first < n_; first += kBlock) {
    Panel panel{first, std::min(kBlock, n_ - first), n_ - first, {}};
    panel.columns.resize(panel.width * (panel.height + 1));
    const Rank owner = owner_of(first / kBlock);
    if (owner == network_.rank()) is_regular = factor(panel) && is_regular;
    pass_round(panel, owner);
    update(panel);
  }
  solve();
  return is_regular;
}

// Computes the factors of the block's columns, from row `first` on. Leaves L below the diagonal, U
// on it and above.
bool Linpack::factor(Panel& panel) {
  double* const base = column(panel.first) + panel.first;
  const auto at = [&](std::size_t j) { return base + j * n_; };
  for (std::size_t k = 0; k < panel.width; ++k) {
    const double* const begin = at(k) + k;
    const double* const end = at(k) + panel.height;
    const double* const largest =
        std::max_element(begin, end, [](double a, double b) { return std::abs(a) < std::abs(b); });
    const auto pivot = static_cast<std::size_t>(largest - at(k));
    panel.pivots()[k] = static_cast<double>(pivot);
    if (*largest == 0) return false;
    for (std::size_t j = 0; j < panel.width; ++j) std::swap(at(j)[k], at(j)[pivot]);
    const double inverse = 1 / at(k)[k];
    for (std::size_t i = k + 1; i < panel.height; ++i) at(k)[i] *= inverse;
    for (std::size_t j = k + 1; j < panel.width; ++j) {
      const double factor = at(j)[k];
      for (std::size_t i = k + 1; i < panel.height; ++i) at(j)[i] -= factor * at(k)[i];
    }
  }
  for (std::size_t j = 0; j < panel.width; ++j) std::copy_n(at(j), panel.height, panel.column(j));
  return true;
}

// Passes the panel from the owner to the next rank, and so on, until all ranks have it.
void Linpack::pass_round(Panel& panel, Rank owner) {
  const Rank size = network_.size();
  const Rank turn = (network_.rank() + size - owner) % size;
  if (turn != 0) {
    const npb::Incoming in{(network_.rank() + size - 1) % size,
                           std::as_writable_bytes(std::span(panel.columns))};
    network_.transfer({}, {&in, 1});
  }
  if (turn + 1 < size) {
    const npb::Outgoing out{(network_.rank() + 1) % size, std::as_bytes(std::span(panel.columns))};
    network_.transfer({&out, 1}, {});
  }
}

// Exchanges the rows of `values`, a column from row panel.first on.
void Linpack::exchange_rows(double* values, Panel& panel) const {
  for (std::size_t k = 0; k < panel.width; ++k) {
    std::swap(values[k], values[static_cast<std::size_t>(panel.pivots()[k])]);
  }
}

// Updates all own columns right of the block: U = L^-1 A, then A -= L U. Every rank updates the
// right side.
void Linpack::update(Panel& panel) {
  const auto eliminate = [&](double* values) {
    exchange_rows(values, panel);
    for (std::size_t k = 0; k < panel.width; ++k) {
      const double factor = values[k];
      const double* const l = panel.column(k);
      for (std::size_t i = k + 1; i < panel.height; ++i) values[i] -= factor * l[i];
    }
  };
  const auto begin = static_cast<std::size_t>(
      std::lower_bound(own_.begin(), own_.end(), panel.first + panel.width) - own_.begin());
#pragma omp parallel for num_threads(threads_) if (threads_ > 1) schedule(static)
  for (std::size_t i = begin; i < own_.size(); ++i) eliminate(&matrix_[i * n_ + panel.first]);
  eliminate(&right_[panel.first]);
}

// Computes x of U x = y, from the last block to the first: the owner solves its block and all ranks
// subtract their part.
void Linpack::solve() {
  Vector solved(kBlock + n_);
  for (std::size_t end = n_; end > 0;) {
    const std::size_t first = (end - 1) / kBlock * kBlock;
    std::fill(solved.begin(), solved.end(), 0.0);
    if (owner_of(first / kBlock) == network_.rank()) {
      for (std::size_t j = end; j-- > first;) {
        const double* const u = column(j);
        right_[j] /= u[j];
        solved[j - first] = right_[j];
        for (std::size_t i = 0; i < j; ++i) {
          const double part = u[i] * right_[j];
          if (i >= first) right_[i] -= part;
          if (i < first) solved[kBlock + i] += part;
        }
      }
    }
    network_.sum(std::span(solved).first(kBlock + first));
    for (std::size_t j = first; j < end; ++j) right_[j] = solved[j - first];
    for (std::size_t i = 0; i < first; ++i) right_[i] -= solved[kBlock + i];
    end = first;
  }
}

// ---- the check ----------------------------------------------------------------------------------

// Generates the matrix again and sums over the own columns, then over the ranks.
double Linpack::residual() {
  Vector sums(2 * n_);  // A x, and for each row the sum of its absolute values
  Vector values;
  for (const std::size_t global : own_) {
    fill(values, global);
    for (std::size_t i = 0; i < n_; ++i) {
      sums[i] += values[i] * right_[global];
      sums[n_ + i] += std::abs(values[i]);
    }
  }
  network_.sum(sums);
  fill(values, n_);
  double error = 0;
  double norm = 0;
  double solution = 0;
  for (std::size_t i = 0; i < n_; ++i) {
    error = std::max(error, std::abs(sums[i] - values[i]));
    norm = std::max(norm, sums[n_ + i]);
    solution = std::max(solution, std::abs(right_[i]));
  }
  const double scale = std::numeric_limits<double>::epsilon() * norm * solution;
  return error / (scale * static_cast<double>(n_));
}

}  // namespace score::cosmo
