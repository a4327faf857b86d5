#include "bench/npb/cfd/flow.hpp"

namespace score::npb::cfd {

namespace {

// [quantity][term]: 1, x, y, z, then their squares, cubes and fourth powers.
constexpr std::array<std::array<double, 13>, kQuantities> kExact{{
    {2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3},
    {1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5},
    {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4},
    {2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3},
    {5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2},
}};

std::array<double, kDimensions> coordinates(const Scheme& scheme, const Point& place) {
  std::array<double, kDimensions> at{};
  for (std::size_t d = 0; d < kDimensions; ++d) {
    at[d] = static_cast<double>(place[d]) / (scheme.points - 1);
  }
  return at;
}

std::array<double, 5> fourth_difference(int place, int points) {
  if (place == 1) return {0, 0, 5, -4, 1};
  if (place == 2) return {0, -4, 6, -4, 1};
  if (place == points - 3) return {1, -4, 6, -4, 0};
  if (place == points - 2) return {1, -4, 5, 0, 0};
  return {1, -4, 6, -4, 1};
}

}  // namespace

Scheme::Scheme(int count)
    : points(count),
      first(0.5 * (count - 1)),
      second(static_cast<double>(count - 1) * (count - 1)) {
  for (int place = 0; place < count; ++place) fourth.push_back(fourth_difference(place, count));
}

State exact_solution(const std::array<double, kDimensions>& at) {
  State u{};
  for (std::size_t m = 0; m < kQuantities; ++m) {
    const auto& c = kExact[m];
    u[m] = c[0];
    for (std::size_t d = 0; d < kDimensions; ++d) {
      u[m] += at[d] * (c[1 + d] + at[d] * (c[4 + d] + at[d] * (c[7 + d] + at[d] * c[10 + d])));
    }
  }
  return u;
}

State exact_state(const Scheme& scheme, const Point& place) {
  return exact_solution(coordinates(scheme, place));
}

// Uses the linear interpolations P between opposite faces: 1 - (1 - Px)(1 - Py)(1 - Pz).
State initial_state(const Scheme& scheme, const Point& place) {
  const auto at = coordinates(scheme, place);
  for (const int i : place) {
    if (i == 0 || i == scheme.points - 1) return exact_solution(at);
  }
  State rest;
  rest.fill(1);
  for (std::size_t d = 0; d < kDimensions; ++d) {
    auto face = at;
    face[d] = 0;
    const State low = exact_solution(face);
    face[d] = 1;
    const State high = exact_solution(face);
    for (std::size_t m = 0; m < kQuantities; ++m) {
      rest[m] *= 1 - ((1 - at[d]) * low[m] + at[d] * high[m]);
    }
  }
  for (double& each : rest) each = 1 - each;
  return rest;
}

}  // namespace score::npb::cfd
