// The right side consists of central differences: first differences of the fluxes, second ones of
// the velocities (viscosity) and of the state (artificial diffusion), fourth ones of the state
// (artificial dissipation). The forcing is the value of the same formulas for the exact solution.
#include "bench/npb/cfd/solution.hpp"

#include <algorithm>
#include <cmath>

namespace score::npb::cfd {

namespace {

constexpr double kTolerance = 1e-8;

Point global(const Cell& cell, const Point& local) {
  return {cell.origin[0] + local[0], cell.origin[1] + local[1], cell.origin[2] + local[2]};
}

bool is_in_cube(const Point& place, int points) {
  return std::ranges::all_of(place, [points](int i) { return i >= 0 && i < points; });
}

double pressure(const State& u, const Primitive& p) {
  return kC2 * (u[kEnergy] - u[0] * p.kinetic);
}

// These return f at the next point - f at the previous one, and the second difference.
template <class Function>
double first_difference(Function f) {
  return f(1) - f(-1);
}

template <class Function>
double second_difference(Function f) {
  return f(1) - 2 * f(0) + f(-1);
}

}  // namespace

Solution::Solution(const Problem& of, const Partition& parts, Communicator& among)
    : problem(of), scheme(of.points), partition(parts), network(among) {
  for (const Cell& cell : parts.cells()) {
    state.emplace_back(cell.edge, kBorder, State{1, 0, 0, 0, 1});
    primitive.emplace_back(cell.edge, 1);
    change.emplace_back(cell.edge, 1);
    forcing_.emplace_back(cell.edge, 0);
  }
  fill([this](const Point& place) { return exact_state(scheme, place); });
  for (std::size_t i = 0; i < forcing_.size(); ++i) {
    find_primitives(i);
    add_right_side(i, forcing_[i]);
  }
}

void Solution::reset() {
  fill([this](const Point& place) { return initial_state(scheme, place); });
}

// Fills all points, and the borders where they belong to the cube.
template <class Value>
void Solution::fill(Value value_at) {
  for (std::size_t i = 0; i < state.size(); ++i) {
    const Cell& cell = partition.cells()[i];
    const Point end{cell.edge[0] + kBorder, cell.edge[1] + kBorder, cell.edge[2] + kBorder};
    for_points({-kBorder, -kBorder, -kBorder}, end, [&](const Point& p) {
      const Point place = global(cell, p);
      if (is_in_cube(place, scheme.points)) *state[i].at(p) = value_at(place);
    });
  }
}

void Solution::find_primitives(std::size_t cell) {
  const Point& edge = partition.cells()[cell].edge;
  for_points({-1, -1, -1}, {edge[0] + 1, edge[1] + 1, edge[2] + 1},
             [&](const Point& p) { *primitive[cell].at(p) = primitive_of(*state[cell].at(p)); });
}

void Solution::find_change(double factor) {
  partition.exchange_borders(state, network);
  for (std::size_t i = 0; i < state.size(); ++i) {
    const Cell& cell = partition.cells()[i];
    find_primitives(i);
    for_points(cell.begin, cell.end, [&](const Point& p) { *change[i].at(p) = State{}; });
    add_right_side(i, change[i]);
    for_points(cell.begin, cell.end, [&](const Point& p) {
      State& right = *change[i].at(p);
      const State& forcing = *forcing_[i].at(p);
      for (std::size_t m = 0; m < kQuantities; ++m) right[m] = factor * (right[m] - forcing[m]);
    });
  }
}

void Solution::advance(double factor) {
  for (std::size_t i = 0; i < state.size(); ++i) {
    const Cell& cell = partition.cells()[i];
    for_points(cell.begin, cell.end, [&](const Point& p) {
      State& u = *state[i].at(p);
      const State& by = *change[i].at(p);
      for (std::size_t m = 0; m < kQuantities; ++m) u[m] += factor * by[m];
    });
  }
}

void Solution::add_right_side(std::size_t cell, Field<State>& to) const {
  add_terms<0>(cell, to);
  add_terms<1>(cell, to);
  add_terms<2>(cell, to);
}

template <std::size_t D>
void Solution::add_terms(std::size_t index, Field<State>& to) const {
  const Cell& cell = partition.cells()[index];
  const auto u_step = state[index].stride(D);
  const auto p_step = primitive[index].stride(D);
  const double viscosity = kC3c4 * scheme.second;
  const double diffusion = kDiffusion[D] * scheme.second;
  for_points(cell.begin, cell.end, [&](const Point& at) {
    const State* const here = state[index].at(at);
    const Primitive* const values = primitive[index].at(at);
    const auto u = [&](int i) -> const State& { return here[i * u_step]; };
    const auto p = [&](int i) -> const Primitive& { return values[i * p_step]; };
    const auto v = [&](int i, std::size_t k) { return p(i).velocity[k]; };
    State& right = *to.at(at);
    const auto& fourth = scheme.fourth[static_cast<std::size_t>(cell.origin[D] + at[D])];
    for (std::size_t m = 0; m < kQuantities; ++m) {
      right[m] += diffusion * second_difference([&](int i) { return u(i)[m]; });
      double sum = 0;
      for (int i = -2; i <= 2; ++i) sum += fourth[static_cast<std::size_t>(i + 2)] * u(i)[m];
      right[m] -= kDissipation * sum;
    }
    right[0] -= scheme.first * first_difference([&](int i) { return u(i)[1 + D]; });
    for (std::size_t k = 0; k < kDimensions; ++k) {
      right[1 + k] +=
          (k == D ? kAlong : 1.0) * viscosity * second_difference([&](int i) { return v(i, k); });
      right[1 + k] -= scheme.first * first_difference([&](int i) {
                        return u(i)[1 + k] * v(i, D) + (k == D ? pressure(u(i), p(i)) : 0.0);
                      });
    }
    right[kEnergy] +=
        viscosity * second_difference([&](int i) {
          return (1 - kC1c5) * p(i).kinetic + v(i, D) * v(i, D) / 6 + kC1c5 * p(i).energy;
        });
    right[kEnergy] -= scheme.first * first_difference([&](int i) {
                        return (u(i)[kEnergy] + pressure(u(i), p(i))) * v(i, D);
                      });
  });
}

State Solution::residual_norm() {
  State squares{};
  for (std::size_t i = 0; i < change.size(); ++i) {
    const Cell& cell = partition.cells()[i];
    for_points(cell.begin, cell.end, [&](const Point& p) {
      for (std::size_t m = 0; m < kQuantities; ++m) {
        squares[m] += (*change[i].at(p))[m] * (*change[i].at(p))[m];
      }
    });
  }
  return norm(squares);
}

State Solution::error_norm() {
  State squares{};
  for (std::size_t i = 0; i < state.size(); ++i) {
    const Cell& cell = partition.cells()[i];
    for_points(cell.begin, cell.end, [&](const Point& p) {
      const State exact = exact_state(scheme, global(cell, p));
      for (std::size_t m = 0; m < kQuantities; ++m) {
        const double error = (*state[i].at(p))[m] - exact[m];
        squares[m] += error * error;
      }
    });
  }
  return norm(squares);
}

State Solution::norm(const State& squares) {
  State sum = squares;
  network.sum(std::span<double>(sum));
  const double points = std::pow(scheme.points - 2, 3);
  for (double& each : sum) each = std::sqrt(each / points);
  return sum;
}

Verdict Solution::verify() {
  const State residual = residual_norm();
  const State error = error_norm();
  Verdict verdict{true, {}};
  double worst = -1;
  const auto compare = [&](const char* name, double value, double expected) {
    verdict.is_right = verdict.is_right && is_close(value, expected, kTolerance);
    const double deviation = std::abs(value - expected) / std::abs(expected);
    if (deviation <= worst) return;
    worst = deviation;
    verdict.detail = compared(name, value, expected);
  };
  for (std::size_t m = 0; m < kQuantities; ++m) {
    compare("of 10 norms the most different residual", residual[m], problem.residual[m]);
    compare("of 10 norms the most different error", error[m], problem.error[m]);
  }
  return verdict;
}

}  // namespace score::npb::cfd
