// Defines the equations of LU, SP and BT (RNR-94-007, section 3): compressible Navier-Stokes in a
// cube, in five conserved quantities, with a known exact solution.
#pragma once

#include "bench/npb/cfd/field.hpp"

#include <array>
#include <cmath>
#include <cstddef>

namespace score::npb::cfd {

constexpr std::size_t kQuantities = 5;
constexpr std::size_t kEnergy = 4;  // index; density is 0, momentum along dimension d is 1 + d
using State = std::array<double, kQuantities>;

// These are the specification's constants, by its names.
constexpr double kC1 = 1.4;
constexpr double kC2 = 0.4;
constexpr double kC3c4 = 0.1;
constexpr double kC1c5 = 1.4 * 1.4;
constexpr double kC1345 = kC1c5 * kC3c4;
constexpr double kAlong = 4.0 / 3.0;  // viscosity of the velocity along a dimension
// Artificial diffusion (second differences) along x, y, z; the same for all quantities.
constexpr std::array<double, kDimensions> kDiffusion{0.75, 0.75, 1.0};
constexpr double kDissipation = 0.25;  // of fourth differences

// Holds the quantities that follow from a state.
struct Primitive {
  double inverse;  // 1 / density
  std::array<double, kDimensions> velocity;
  double kinetic;  // energy of motion per mass
  double energy;   // all energy per mass
  double sound;    // speed of sound
};

inline Primitive primitive_of(const State& u) {
  const double inverse = 1 / u[0];
  Primitive p{inverse, {u[1] * inverse, u[2] * inverse, u[3] * inverse}, 0, u[4] * inverse, 0};
  const auto& v = p.velocity;
  p.kinetic = 0.5 * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
  p.sound = std::sqrt(kC1 * kC2 * (p.energy - p.kinetic));
  return p;
}

// Holds the constants for a cube with `points` points along each dimension.
struct Scheme {
  explicit Scheme(int count);

  int points;
  double first;   // factor of first differences over two steps: 1 / (2 h)
  double second;  // of second differences: 1 / (h h)
  // [position along a dimension]: weights of the fourth difference at -2 ... 2, truncated at the
  // surface.
  std::vector<std::array<double, 5>> fourth;
};

// Returns the exact solution at coordinates in [0, 1].
State exact_solution(const std::array<double, kDimensions>& at);
// Returns the exact solution on the surface; inside, an interpolation of its values on the six
// faces.
State initial_state(const Scheme& scheme, const Point& place);
State exact_state(const Scheme& scheme, const Point& place);

// Returns the Jacobian of the flux along D times `x`.
template <std::size_t D>
State times_flux(const Primitive& p, const State& x) {
  const auto& v = p.velocity;
  const double along = x[1 + D] - v[D] * x[0];
  const double pressure =
      kC2 * (p.kinetic * x[0] - v[0] * x[1] - v[1] * x[2] - v[2] * x[3] + x[kEnergy]);
  const double enthalpy = kC1 * p.energy - kC2 * p.kinetic;
  State y{x[1 + D]};
  for (std::size_t k = 0; k < kDimensions; ++k) y[1 + k] = v[k] * along + v[D] * x[1 + k];
  y[1 + D] += pressure;
  y[kEnergy] = enthalpy * along + v[D] * (x[kEnergy] + pressure);
  return y;
}

// Returns the Jacobian of the viscous terms along D times `x`.
template <std::size_t D>
State times_viscosity(const Primitive& p, const State& x) {
  State y{};
  double work = 0;
  for (std::size_t k = 0; k < kDimensions; ++k) {
    const double factor = kC3c4 * (k == D ? kAlong : 1.0);
    const double change = p.inverse * (x[1 + k] - p.velocity[k] * x[0]);
    y[1 + k] = factor * change;
    work += (factor - kC1345) * p.velocity[k] * change;
  }
  y[kEnergy] = work + kC1345 * p.inverse * (x[kEnergy] - p.energy * x[0]);
  return y;
}

// Returns the coupling of a point to its neighbour (primitive values `p`, change `x`) one step
// along D in the linearised equations of a time step. `side` is 1 for the next neighbour, -1 for
// the previous one.
template <std::size_t D>
State times_coupling(const Scheme& s, double dt, double side, const Primitive& p, const State& x) {
  const State flux = times_flux<D>(p, x);
  const State viscosity = times_viscosity<D>(p, x);
  State y;
  for (std::size_t m = 0; m < kQuantities; ++m) {
    y[m] = dt * (side * s.first * flux[m] - s.second * (viscosity[m] + kDiffusion[D] * x[m]));
  }
  return y;
}

}  // namespace score::npb::cfd
