// Implements BT: each time step computes, along x, y and z in turn, systems that couple every point
// of a line with its two neighbours by blocks of 5 x 5 numbers. A line is eliminated from its
// beginning to its end and substituted back.
#include "bench/npb/cfd/sweep.hpp"

#include <algorithm>

namespace score::npb::cfd {

namespace {

using Matrix = std::array<State, kQuantities>;  // [column][row]

State unit(std::size_t index) {
  State x{};
  x[index] = 1;
  return x;
}

// A matrix of 5 x 5 and right sides, [row][column]. The elimination turns the matrix into the unit
// matrix.
constexpr std::size_t kColumns = 2 * kQuantities + 1;
using System = std::array<std::array<double, kColumns + 1>, kQuantities>;  // padded for vectors

void eliminate(System& system) {
  for (std::size_t pivot = 0; pivot < kQuantities; ++pivot) {
    const double factor = 1 / system[pivot][pivot];
    for (double& each : system[pivot]) each *= factor;
    for (std::size_t row = 0; row < kQuantities; ++row) {
      if (row == pivot) continue;
      const double by = system[row][pivot];
      for (std::size_t c = 0; c <= kColumns; ++c) system[row][c] -= by * system[pivot][c];
    }
  }
}

// Holds x = right - next * (x of the next point).
struct Reduced {
  Matrix next{};
  State right{};
};

constexpr std::size_t kForwardWidth = (kQuantities + 1) * kQuantities;

class Bt final : public Kernel {
 public:
  Bt(const Problem& problem, const Partition& partition, Communicator& network)
      : solution_(problem, partition, network), sweep_(solution_) {
    for (const Cell& cell : partition.cells()) next_.emplace_back(cell.edge, 0);
  }

  void prepare() override { solution_.reset(); }

  void run(Meter& meter) override {
    for (int i = 0; i < solution_.problem.steps; ++i) {
      solution_.find_change(solution_.problem.dt);
      solve<0>(meter);
      solve<1>(meter);
      solve<2>(meter);
      solution_.advance(1);
    }
  }

  [[nodiscard]] Verdict verify() override {
    solution_.find_change(1);
    return solution_.verify();
  }

 private:
  template <std::size_t D>
  void solve(Meter& meter) {
    sweep_.run<D>(1, kForwardWidth, [&](std::size_t cell, std::span<double> carried) {
      reduce<D>(cell, carried, meter);
    });
    sweep_.run<D>(-1, kQuantities, [&](std::size_t cell, std::span<double> carried) {
      substitute<D>(cell, carried, meter);
    });
  }

  template <std::size_t D>
  void reduce(std::size_t index, std::span<double> carried, Meter& meter) {
    const Cell& cell = solution_.partition.cells()[index];
    for_lines<D>(cell, meter, [&](Point at, std::size_t line) {
      double* const kept = &carried[line * kForwardWidth];
      Reduced reduced;
      for (std::size_t c = 0; c < kQuantities; ++c) {
        std::copy_n(kept + c * kQuantities, kQuantities, reduced.next[c].begin());
      }
      std::copy_n(kept + kQuantities * kQuantities, kQuantities, reduced.right.begin());
      for (at[D] = cell.begin[D]; at[D] < cell.end[D]; ++at[D]) reduce_point<D>(index, at, reduced);
      for (std::size_t c = 0; c < kQuantities; ++c) {
        std::ranges::copy(reduced.next[c], kept + c * kQuantities);
      }
      std::ranges::copy(reduced.right, kept + kQuantities * kQuantities);
    });
  }

  // `reduced` is the previous point's on entry and this point's on return.
  template <std::size_t D>
  void reduce_point(std::size_t index, const Point& at, Reduced& reduced) {
    const Scheme& scheme = solution_.scheme;
    const double dt = solution_.problem.dt;
    const Field<Primitive>& primitive = solution_.primitive[index];
    const Primitive* const here = primitive.at(at);
    const Primitive& before = here[-primitive.stride(D)];
    const Primitive& behind = here[primitive.stride(D)];
    System system{};
    for (std::size_t c = 0; c < kQuantities; ++c) {
      const State x = unit(c);
      const State viscosity = times_viscosity<D>(*here, x);
      const State eliminated = times_coupling<D>(scheme, dt, -1, before, reduced.next[c]);
      const State next = times_coupling<D>(scheme, dt, 1, behind, x);
      for (std::size_t row = 0; row < kQuantities; ++row) {
        system[row][c] = x[row] - eliminated[row] +
                         2 * dt * scheme.second * (viscosity[row] + kDiffusion[D] * x[row]);
        system[row][kQuantities + c] = next[row];
      }
    }
    State& change = *solution_.change[index].at(at);
    const State eliminated = times_coupling<D>(scheme, dt, -1, before, reduced.right);
    for (std::size_t row = 0; row < kQuantities; ++row) {
      system[row][2 * kQuantities] = change[row] - eliminated[row];
    }
    eliminate(system);
    for (std::size_t row = 0; row < kQuantities; ++row) {
      for (std::size_t c = 0; c < kQuantities; ++c) {
        reduced.next[c][row] = system[row][kQuantities + c];
      }
      reduced.right[row] = system[row][2 * kQuantities];
    }
    *next_[index].at(at) = reduced.next;
    change = reduced.right;
  }

  template <std::size_t D>
  void substitute(std::size_t index, std::span<double> carried, Meter& meter) {
    const Cell& cell = solution_.partition.cells()[index];
    for_lines<D>(cell, meter, [&](Point at, std::size_t line) {
      double* const kept = &carried[line * kQuantities];
      State x;
      std::copy_n(kept, kQuantities, x.begin());
      for (at[D] = cell.end[D] - 1; at[D] >= cell.begin[D]; --at[D]) {
        const Matrix& next = *next_[index].at(at);
        State& change = *solution_.change[index].at(at);
        for (std::size_t c = 0; c < kQuantities; ++c) {
          for (std::size_t row = 0; row < kQuantities; ++row) change[row] -= next[c][row] * x[c];
        }
        x = change;
      }
      std::ranges::copy(x, kept);
    });
  }

  Solution solution_;
  Sweep sweep_;
  std::vector<Field<Matrix>> next_;  // [cell]: Reduced::next of its points
};

}  // namespace
}  // namespace score::npb::cfd

namespace score::npb {

std::unique_ptr<Kernel> make_bt(char size, Communicator& network) {
  return cfd::make_on_diagonals<cfd::Bt>(cfd::bt_problem(size), network);
}

}  // namespace score::npb
