// Implements SP: each time step computes, along x, y and z in turn, scalar systems that couple
// every point of a line with two neighbours on each side. The five quantities are transformed to
// quantities that propagate independently: three with the flow, one faster and one slower by the
// speed of sound.
#include "bench/npb/cfd/sweep.hpp"

#include <algorithm>
#include <cmath>

namespace score::npb::cfd {

namespace {

constexpr std::size_t kSystems = 3;  // with the flow, faster, slower
constexpr std::array<std::size_t, kQuantities> kSystemOf{0, 0, 0, 1, 2};
const double kHalfRoot = std::sqrt(0.5);

// Holds x = right - next * (x of the next point) - after * (x of the one behind that).
struct Reduced {
  std::array<double, kSystems> next{}, after{};
  State right{};
};

using Coefficients = std::array<std::array<double, kSystems>, 2>;  // next, after

static_assert(sizeof(Reduced) == 11 * sizeof(double));
constexpr std::size_t kReducedWidth = 11;

Reduced load(const double* from) {
  Reduced reduced;
  std::copy_n(from, kSystems, reduced.next.begin());
  std::copy_n(from + kSystems, kSystems, reduced.after.begin());
  std::copy_n(from + 2 * kSystems, kQuantities, reduced.right.begin());
  return reduced;
}

void store(const Reduced& reduced, double* to) {
  to = std::ranges::copy(reduced.next, to).out;
  to = std::ranges::copy(reduced.after, to).out;
  std::ranges::copy(reduced.right, to);
}

// Converts a state to the quantities that propagate independently along x.
void from_state(const Primitive& p, State& r) {
  const auto& [x, y, z] = p.velocity;
  const double t1 =
      kC2 / (p.sound * p.sound) * (p.kinetic * r[0] - x * r[1] - y * r[2] - z * r[3] + r[4]);
  const double t2 = kHalfRoot * p.inverse * (x * r[0] - r[1]);
  const double t3 = kHalfRoot * p.inverse * p.sound * t1;
  r = {r[0] - t1, -p.inverse * (z * r[0] - r[3]), p.inverse * (y * r[0] - r[2]), t3 - t2, t3 + t2};
}

// Converts the quantities of direction x to those of direction y.
void from_x_to_y(State& r) {
  const double t1 = kHalfRoot * r[2];
  const double t2 = 0.5 * (r[3] + r[4]);
  r = {-r[1], r[0], kHalfRoot * (r[3] - r[4]), t2 - t1, t2 + t1};
}

void from_y_to_z(State& r) {
  const double t1 = kHalfRoot * r[0];
  const double t2 = 0.5 * (r[3] + r[4]);
  r = {kHalfRoot * (r[3] - r[4]), -r[2], r[1], t2 - t1, t2 + t1};
}

void from_z_to_state(const Primitive& p, State& r) {
  const auto& [x, y, z] = p.velocity;
  const double density = 1 / p.inverse;
  const double t1 = kHalfRoot * density / p.sound * (r[3] + r[4]);
  const double t2 = r[2] + t1;
  const double t3 = kHalfRoot * density * (r[3] - r[4]);
  r = {t2, x * t2 - density * r[1], y * t2 + density * r[0], z * t2 + t3,
       density * (y * r[0] - x * r[1]) + p.kinetic * t2 + p.sound * p.sound / kC2 * t1 + z * t3};
}

class Sp final : public Kernel {
 public:
  Sp(const Problem& problem, const Partition& partition, Communicator& network)
      : solution_(problem, partition, network), sweep_(solution_) {
    for (const Cell& cell : partition.cells()) coefficients_.emplace_back(cell.edge, 0);
  }

  void prepare() override { solution_.reset(); }

  void run(Meter& meter) override {
    for (int i = 0; i < solution_.problem.steps; ++i) {
      solution_.find_change(solution_.problem.dt);
      transform(from_state);
      solve<0>(meter);
      transform([](const Primitive&, State& r) { from_x_to_y(r); });
      solve<1>(meter);
      transform([](const Primitive&, State& r) { from_y_to_z(r); });
      solve<2>(meter);
      transform(from_z_to_state);
      solution_.advance(1);
    }
  }

  [[nodiscard]] Verdict verify() override {
    solution_.find_change(1);
    return solution_.verify();
  }

 private:
  template <class Change>
  void transform(Change change) {
    for (std::size_t i = 0; i < solution_.change.size(); ++i) {
      const Cell& cell = solution_.partition.cells()[i];
      for_points(cell.begin, cell.end, [&](const Point& at) {
        change(*solution_.primitive[i].at(at), *solution_.change[i].at(at));
      });
    }
  }

  template <std::size_t D>
  void solve(Meter& meter) {
    sweep_.run<D>(1, 2 * kReducedWidth, [&](std::size_t cell, std::span<double> carried) {
      reduce<D>(cell, carried, meter);
    });
    sweep_.run<D>(-1, 2 * kQuantities, [&](std::size_t cell, std::span<double> carried) {
      substitute<D>(cell, carried, meter);
    });
  }

  template <std::size_t D>
  void reduce(std::size_t index, std::span<double> carried, Meter& meter) {
    const Cell& cell = solution_.partition.cells()[index];
    for_lines<D>(cell, meter, [&](Point at, std::size_t line) {
      double* const kept = &carried[line * 2 * kReducedWidth];
      Reduced earlier = load(kept);  // two points before
      Reduced previous = load(kept + kReducedWidth);
      for (at[D] = cell.begin[D]; at[D] < cell.end[D]; ++at[D]) {
        const Reduced reduced = reduced_point<D>(index, at, earlier, previous);
        *coefficients_[index].at(at) = {reduced.next, reduced.after};
        *solution_.change[index].at(at) = reduced.right;
        earlier = previous;
        previous = reduced;
      }
      store(earlier, kept);
      store(previous, kept + kReducedWidth);
    });
  }

  // Returns the equation of a point, without the two points before it.
  template <std::size_t D>
  Reduced reduced_point(std::size_t index, const Point& at, const Reduced& earlier,
                        const Reduced& previous) const {
    const Scheme& scheme = solution_.scheme;
    const double dt = solution_.problem.dt;
    const Field<Primitive>& primitive = solution_.primitive[index];
    const Primitive* const here = primitive.at(at);
    const Primitive& before = here[-primitive.stride(D)];
    const Primitive& behind = here[primitive.stride(D)];
    const auto spread = [&](const Primitive& p) {
      return dt * scheme.second * (kDiffusion[D] + kC1345 * p.inverse);
    };
    const auto place = solution_.partition.cells()[index].origin[D] + at[D];
    const auto& fourth = scheme.fourth[static_cast<std::size_t>(place)];
    const double dissipation = dt * kDissipation;
    constexpr std::array<double, kSystems> kSounds{0, 1, -1};
    std::array<double, kSystems> two_back{}, one_back{}, scale{};
    Reduced reduced;
    for (std::size_t s = 0; s < kSystems; ++s) {
      const auto travel = [&](const Primitive& p) {
        return dt * scheme.first * (p.velocity[D] + kSounds[s] * p.sound);
      };
      two_back[s] = dissipation * fourth[0];
      one_back[s] =
          dissipation * fourth[1] - travel(before) - spread(before) - two_back[s] * earlier.next[s];
      scale[s] = 1 / (1 + 2 * spread(*here) + dissipation * fourth[2] -
                      two_back[s] * earlier.after[s] - one_back[s] * previous.next[s]);
      reduced.next[s] = scale[s] * (dissipation * fourth[3] + travel(behind) - spread(behind) -
                                    one_back[s] * previous.after[s]);
      reduced.after[s] = scale[s] * dissipation * fourth[4];
    }
    const State& change = *solution_.change[index].at(at);
    for (std::size_t m = 0; m < kQuantities; ++m) {
      const std::size_t s = kSystemOf[m];
      reduced.right[m] =
          scale[s] * (change[m] - two_back[s] * earlier.right[m] - one_back[s] * previous.right[m]);
    }
    return reduced;
  }

  template <std::size_t D>
  void substitute(std::size_t index, std::span<double> carried, Meter& meter) {
    const Cell& cell = solution_.partition.cells()[index];
    for_lines<D>(cell, meter, [&](Point at, std::size_t line) {
      double* const kept = &carried[line * 2 * kQuantities];
      State next;
      State after;
      std::copy_n(kept, kQuantities, next.begin());
      std::copy_n(kept + kQuantities, kQuantities, after.begin());
      for (at[D] = cell.end[D] - 1; at[D] >= cell.begin[D]; --at[D]) {
        const Coefficients& c = *coefficients_[index].at(at);
        State& change = *solution_.change[index].at(at);
        for (std::size_t m = 0; m < kQuantities; ++m) {
          const std::size_t s = kSystemOf[m];
          change[m] -= c[0][s] * next[m] + c[1][s] * after[m];
        }
        after = next;
        next = change;
      }
      std::ranges::copy(next, kept);
      std::ranges::copy(after, kept + kQuantities);
    });
  }

  Solution solution_;
  Sweep sweep_;
  std::vector<Field<Coefficients>> coefficients_;  // [cell]
};

}  // namespace
}  // namespace score::npb::cfd

namespace score::npb {

std::unique_ptr<Kernel> make_sp(char size, Communicator& network) {
  return cfd::make_on_diagonals<cfd::Sp>(cfd::sp_problem(size), network);
}

}  // namespace score::npb
