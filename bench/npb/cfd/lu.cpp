// Implements LU: each step sweeps through the cube from one corner to the opposite one and back
// (symmetric successive over-relaxation). A point needs the new values of the three points before
// it, so the sweep is a wave: plane after plane of z, each received from two neighbours and passed
// on to two others.
#include "bench/npb/cfd/solution.hpp"

#include <array>

namespace score::npb::cfd {

namespace {

constexpr double kRelaxation = 1.2;
constexpr double kTolerance = 1e-8;

// Holds the block of a point itself, all three dimensions together. The block is a lower triangle
// with full first column and last row.
class Diagonal {
 public:
  Diagonal(const Scheme& scheme, double dt) {
    const double both_sides = 2 * dt * scheme.second;
    constant_ = 1 + both_sides * (kDiffusion[0] + kDiffusion[1] + kDiffusion[2]);
    momentum_ = both_sides * kC3c4 * (kAlong + 2);
    energy_ = both_sides * kC1345 * 3;
  }

  // Returns x with (block) x = right.
  [[nodiscard]] State solve(const Primitive& p, const State& right) const {
    const double momentum = momentum_ * p.inverse;
    const double energy = energy_ * p.inverse;
    State x{right[0] / constant_};
    double work = 0;
    for (std::size_t k = 0; k < kDimensions; ++k) {
      const double carried = p.velocity[k] * x[0];
      x[1 + k] = (right[1 + k] + momentum * carried) / (constant_ + momentum);
      work += p.velocity[k] * (x[1 + k] - carried);
    }
    x[kEnergy] = (right[kEnergy] - (momentum - energy) * work + energy * p.energy * x[0]) /
                 (constant_ + energy);
    return x;
  }

 private:
  double constant_, momentum_, energy_;
};

class Lu final : public Kernel {
 public:
  Lu(const Problem& problem, const Partition& partition, Communicator& network)
      : solution_(problem, partition, network),
        cell_(solution_.partition.cells().front()),
        diagonal_(solution_.scheme, problem.dt) {}

  void prepare() override {
    solution_.reset();
    solution_.find_change(1);
  }

  void run(Meter& meter) override {
    for (int i = 0; i < solution_.problem.steps; ++i) {
      scale_change(solution_.problem.dt);
      for (int z = cell_.begin[2]; z < cell_.end[2]; ++z) {
        receive_plane(z, -1);
        sweep_up(z);
        send_plane(z, 1);
        meter.tick();
      }
      for (int z = cell_.end[2] - 1; z >= cell_.begin[2]; --z) {
        receive_plane(z, 1);
        sweep_down(z);
        send_plane(z, -1);
        meter.tick();
      }
      solution_.advance(1 / (kRelaxation * (2 - kRelaxation)));
      solution_.find_change(1);
    }
  }

  [[nodiscard]] Verdict verify() override {
    Verdict verdict = solution_.verify();
    const double published = solution_.problem.surface;
    const double surface = surface_integral();
    verdict.is_right = verdict.is_right && is_close(surface, published, kTolerance);
    verdict.detail += compared("; integral", surface, published);
    return verdict;
  }

 private:
  void scale_change(double factor) {
    for_points(cell_.begin, cell_.end, [&](const Point& at) {
      for (double& each : *change().at(at)) each *= factor;
    });
  }

  Field<State>& change() { return solution_.change.front(); }

  // Returns the contribution of the neighbours along all three dimensions on one side.
  State of_neighbours(const Point& at, int side) {
    const Field<Primitive>& primitive = solution_.primitive.front();
    const Scheme& scheme = solution_.scheme;
    const double dt = solution_.problem.dt;
    const State* const x = change().at(at);
    const Primitive* const p = primitive.at(at);
    const auto along = [&]<std::size_t D>() {
      return times_coupling<D>(scheme, dt, side, p[side * primitive.stride(D)],
                               x[side * change().stride(D)]);
    };
    const State a = along.operator()<0>();
    const State b = along.operator()<1>();
    const State c = along.operator()<2>();
    State sum;
    for (std::size_t m = 0; m < kQuantities; ++m) sum[m] = kRelaxation * (a[m] + b[m] + c[m]);
    return sum;
  }

  void sweep_up(int z) {
    for_points({cell_.begin[0], cell_.begin[1], z}, {cell_.end[0], cell_.end[1], z + 1},
               [&](const Point& at) {
                 State right = *change().at(at);
                 const State before = of_neighbours(at, -1);
                 for (std::size_t m = 0; m < kQuantities; ++m) right[m] -= before[m];
                 *change().at(at) = diagonal_.solve(*solution_.primitive.front().at(at), right);
               });
  }

  void sweep_down(int z) {
    for (int y = cell_.end[1] - 1; y >= cell_.begin[1]; --y) {
      for (int x = cell_.end[0] - 1; x >= cell_.begin[0]; --x) {
        const Point at{x, y, z};
        const State by = diagonal_.solve(*solution_.primitive.front().at(at), of_neighbours(at, 1));
        State& value = *change().at(at);
        for (std::size_t m = 0; m < kQuantities; ++m) value[m] -= by[m];
      }
    }
  }

  // Visits the row of a plane at the edge towards `step` along dimension 0 or 1. With `beyond`,
  // visits the row behind the edge.
  template <class Visit>
  void for_row(std::size_t dimension, int step, int z, bool beyond, Visit visit) {
    const std::size_t other = 1 - dimension;
    Point at{0, 0, z};
    at[dimension] = step > 0 ? cell_.edge[dimension] - (beyond ? 0 : 1) : (beyond ? -1 : 0);
    for (at[other] = cell_.begin[other]; at[other] < cell_.end[other]; ++at[other]) {
      visit(*change().at(at));
    }
  }

  // Receives the new values at the edges of the neighbours on one side.
  void receive_plane(int z, int side) {
    std::array<Incoming, 2> in;
    std::size_t count = 0;
    for (std::size_t d = 0; d < 2; ++d) {
      const auto from = solution_.partition.neighbour(d, side);
      if (!from) continue;
      rows_[d].resize(row_length(d));
      in[count++] = {*from, std::as_writable_bytes(std::span(rows_[d]))};
    }
    if (count == 0) return;
    solution_.network.transfer({}, std::span(in).first(count));
    for (std::size_t d = 0; d < 2; ++d) {
      if (!solution_.partition.neighbour(d, side)) continue;
      std::size_t next = 0;
      for_row(d, side, z, true, [&](State& value) { value = rows_[d][next++]; });
    }
  }

  void send_plane(int z, int side) {
    std::array<Outgoing, 2> out;
    std::size_t count = 0;
    for (std::size_t d = 0; d < 2; ++d) {
      const auto to = solution_.partition.neighbour(d, side);
      if (!to) continue;
      rows_[d].clear();
      for_row(d, side, z, false, [&](const State& value) { rows_[d].push_back(value); });
      out[count++] = {*to, std::as_bytes(std::span(rows_[d]))};
    }
    if (count > 0) solution_.network.transfer(std::span(out).first(count), {});
  }

  [[nodiscard]] std::size_t row_length(std::size_t dimension) const {
    const std::size_t other = 1 - dimension;
    return static_cast<std::size_t>(cell_.end[other] - cell_.begin[other]);
  }

  // Computes the integral of the pressure over the faces of a box of points inside the cube, by the
  // trapezoidal rule.
  double surface_integral() {
    const int points = solution_.scheme.points;
    const Point low{1, 1, 2};
    const Point high{points - 2, points - 3, points - 2};
    double sum = 0;
    for_points(cell_.begin, cell_.end, [&](const Point& at) {
      std::array<double, kDimensions> weight{}, face{};
      for (std::size_t d = 0; d < kDimensions; ++d) {
        const int place = cell_.origin[d] + at[d];
        face[d] = place == low[d] || place == high[d] ? 1 : 0;
        weight[d] = place < low[d] || place > high[d] ? 0 : 2 - face[d];
      }
      const State& u = *solution_.state.front().at(at);
      const double motion = (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
      sum += kC2 * (u[kEnergy] - 0.5 * motion) *
             (face[2] * weight[0] * weight[1] + face[1] * weight[0] * weight[2] +
              face[0] * weight[1] * weight[2]);
    });
    solution_.network.sum(std::span(&sum, 1));
    return 0.25 * sum / solution_.scheme.second;
  }

  Solution solution_;
  const Cell& cell_;
  Diagonal diagonal_;
  std::array<std::vector<State>, 2> rows_;  // rows of a plane, by dimension
};

}  // namespace
}  // namespace score::npb::cfd

namespace score::npb {

std::unique_ptr<Kernel> make_lu(char size, Communicator& network) {
  const cfd::Problem* const problem = cfd::lu_problem(size);
  if (problem == nullptr) return nullptr;
  const auto partition =
      cfd::Partition::of_pencils(problem->points, network.rank(), network.size());
  return partition ? std::make_unique<cfd::Lu>(*problem, *partition, network) : nullptr;
}

}  // namespace score::npb
