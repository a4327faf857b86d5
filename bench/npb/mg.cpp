// Implements MG: it computes Poisson's equation on a periodic cube, by cycles over grids of halved
// resolution. Each grid is divided among the ranks in all three dimensions. Where a rank would have
// a single point along one dimension, all ranks have the whole grid from that level down and do the
// same work: it is some hundred points.
#include "bench/npb/kernel.hpp"
#include "bench/npb/mg_grid.hpp"
#include "bench/npb/random.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace score::npb {

namespace {

constexpr double kTolerance = 1e-8;
constexpr std::size_t kCharges = 10;  // of each sign

// Holds the weights of a point, its 6 neighbours, the 12 behind an edge and the 8 behind a corner.
struct Stencil {
  double centre, faces, edges, corners;
};

constexpr Stencil kOperator{-8.0 / 3.0, 0, 1.0 / 6.0, 1.0 / 12.0};
constexpr Stencil kSmoother{-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0, 0};
constexpr Stencil kLargeSmoother{-3.0 / 17.0, 1.0 / 33.0, -1.0 / 61.0, 0};
constexpr Stencil kRestriction{0.5, 0.25, 0.125, 0.0625};

struct Problem {
  int edge;
  int iterations;
  Stencil smoother;
  double norm;  // published
};

std::optional<Problem> mg_problem_of(char size) {
  switch (size) {
    case 'S':
      return Problem{32, 4, kSmoother, 0.5307707005734e-04};
    case 'W':
      return Problem{128, 4, kSmoother, 0.6467329375339e-05};
    case 'A':
      return Problem{256, 4, kSmoother, 0.2433365309069e-05};
    case 'B':
      return Problem{256, 20, kLargeSmoother, 0.1800564401355e-05};
    default:
      return std::nullopt;
  }
}

// Computes the sums around each point of a row. `near` has the four neighbours of each point in the
// planes of y and z, `far` has the four diagonal ones; both begin at index -1.
class Surroundings {
 public:
  explicit Surroundings(int edge) : near_(static_cast<std::size_t>(edge) + 2), far_(near_.size()) {}

  void gather(const Block& block, int y, int z) {
    const double* const south = block.row(y - 1, z);
    const double* const north = block.row(y + 1, z);
    const double* const down = block.row(y, z - 1);
    const double* const up = block.row(y, z + 1);
    const double* const south_down = block.row(y - 1, z - 1);
    const double* const north_down = block.row(y + 1, z - 1);
    const double* const south_up = block.row(y - 1, z + 1);
    const double* const north_up = block.row(y + 1, z + 1);
    for (int x = -1; x <= block.edge(0); ++x) {
      const auto i = static_cast<std::size_t>(x + 1);
      near_[i] = south[x] + north[x] + down[x] + up[x];
      far_[i] = south_down[x] + north_down[x] + south_up[x] + north_up[x];
    }
  }

  [[nodiscard]] double apply(const Stencil& s, const double* row, int x) const {
    const auto i = static_cast<std::size_t>(x + 1);
    return s.centre * row[x] + s.faces * (row[x - 1] + row[x + 1] + near_[i]) +
           s.edges * (far_[i] + near_[i - 1] + near_[i + 1]) +
           s.corners * (far_[i - 1] + far_[i + 1]);
  }

 private:
  std::vector<double> near_, far_;
};

struct Level {
  RankGrid grid;
  Block solution, residual;

  Level(int edge, const RankGrid& of) : grid(of), solution(edge, of), residual(edge, of) {}
};

bool is_divisible(int edge, const RankGrid& grid) {
  return std::ranges::all_of(grid.ranks, [edge](int ranks) { return edge / ranks >= 2; });
}

class Mg final : public Kernel {
 public:
  Mg(const Problem& problem, Communicator& network)
      : problem_(problem),
        network_(network),
        grid_(RankGrid::of(network.rank(), network.size())),
        charges_(problem.edge, grid_) {
    for (int edge = 2; edge <= problem.edge; edge *= 2) {
      levels_.emplace_back(edge, is_divisible(edge, grid_) ? grid_ : RankGrid{});
    }
    place_charges();
  }

  void prepare() override { levels_.back().solution.clear(); }

  void run(Meter& meter) override {
    Level& finest = levels_.back();
    subtract(charges_, finest, meter);
    for (int i = 0; i < problem_.iterations; ++i) {
      cycle(meter);
      subtract(charges_, finest, meter);
    }
  }

  [[nodiscard]] Verdict verify() override {
    const Block& rest = levels_.back().residual;
    double sum = 0;
    for_rows(rest, [&](int y, int z) {
      for (int x = 0; x < rest.edge(0); ++x) sum += rest.row(y, z)[x] * rest.row(y, z)[x];
    });
    network_.sum({&sum, 1});
    const double norm = std::sqrt(sum / std::pow(problem_.edge, 3));
    return {is_close(norm, problem_.norm, kTolerance), compared("norm", norm, problem_.norm)};
  }

 private:
  template <class Row>
  static void for_rows(const Block& block, Row row) {
    for (int z = 0; z < block.edge(2); ++z) {
      for (int y = 0; y < block.edge(1); ++y) row(y, z);
    }
  }

  // Runs one cycle down and up through all grids.
  void cycle(Meter& meter) {
    for (std::size_t k = levels_.size() - 1; k > 0; --k) restrict_to(levels_[k - 1], levels_[k]);
    levels_.front().solution.clear();
    smooth(levels_.front(), meter);
    for (std::size_t k = 1; k < levels_.size(); ++k) {
      Level& level = levels_[k];
      const bool is_finest = k + 1 == levels_.size();
      if (!is_finest) level.solution.clear();
      add_interpolated(level, levels_[k - 1]);
      subtract(is_finest ? charges_ : level.residual, level, meter);
      smooth(level, meter);
    }
  }

  // Computes residual = right - A solution. `right` may be the residual itself.
  void subtract(const Block& right, Level& level, Meter& meter) {
    Surroundings around(right.edge(0));
    for_rows(right, [&](int y, int z) {
      around.gather(level.solution, y, z);
      const double* const solution = level.solution.row(y, z);
      const double* const from = right.row(y, z);
      double* const to = level.residual.row(y, z);
      for (int x = 0; x < right.edge(0); ++x) {
        to[x] = from[x] - around.apply(kOperator, solution, x);
      }
      if (y == 0) meter.tick();
    });
    level.residual.exchange_border(level.grid, network_);
  }

  // Computes solution += S residual.
  void smooth(Level& level, Meter& meter) {
    Surroundings around(level.residual.edge(0));
    for_rows(level.residual, [&](int y, int z) {
      around.gather(level.residual, y, z);
      const double* const residual = level.residual.row(y, z);
      double* const to = level.solution.row(y, z);
      for (int x = 0; x < level.residual.edge(0); ++x) {
        to[x] += around.apply(problem_.smoother, residual, x);
      }
      if (y == 0) meter.tick();
    });
    level.solution.exchange_border(level.grid, network_);
  }

  // Coarse point j lies on fine point 2 j + 1.
  void restrict_to(Level& coarse, const Level& fine) {
    const bool is_whole = coarse.grid.is_alone() && !fine.grid.is_alone();
    Block& to = coarse.residual;
    if (is_whole) to.clear();
    const auto first = [&](std::size_t d) { return is_whole ? fine.residual.origin(d) / 2 : 0; };
    Surroundings around(fine.residual.edge(0));
    for (int z = 0; z < fine.residual.edge(2) / 2; ++z) {
      for (int y = 0; y < fine.residual.edge(1) / 2; ++y) {
        around.gather(fine.residual, 2 * y + 1, 2 * z + 1);
        const double* const from = fine.residual.row(2 * y + 1, 2 * z + 1);
        double* const row = to.row(first(1) + y, first(2) + z) + first(0);
        for (int x = 0; x < fine.residual.edge(0) / 2; ++x) {
          row[x] = around.apply(kRestriction, from, 2 * x + 1);
        }
      }
    }
    if (is_whole) network_.sum(std::span(to.values()));
    to.exchange_border(coarse.grid, network_);
  }

  // Adds, between two coarse points, their mean. This includes the border, where the coarse points
  // are known.
  static void add_interpolated(Level& fine, const Level& coarse) {
    const bool is_whole = coarse.grid.is_alone() && !fine.grid.is_alone();
    Block& to = fine.solution;
    const auto first = [&](std::size_t d) { return is_whole ? to.origin(d) / 2 : 0; };
    const auto below = [](int place) { return (place - 1) >> 1; };
    const auto above = [](int place) { return place >> 1; };
    for (int z = -1; z <= to.edge(2); ++z) {
      for (int y = -1; y <= to.edge(1); ++y) {
        const auto row = [&](int cy, int cz) {
          return coarse.solution.row(first(1) + cy, first(2) + cz) + first(0);
        };
        const std::array rows{row(below(y), below(z)), row(above(y), below(z)),
                              row(below(y), above(z)), row(above(y), above(z))};
        double* const values = to.row(y, z);
        for (int x = -1; x <= to.edge(0); ++x) {
          double sum = 0;
          for (const double* each : rows) sum += each[below(x)] + each[above(x)];
          values[x] += sum / 8;
        }
      }
    }
  }

  struct Charge {
    double value;
    double place;  // position in the whole cube, x fastest
  };

  // Puts +1 at the ten largest of the random numbers of all points, -1 at the ten smallest.
  void place_charges() {
    const std::vector<Charge> all = of_all_ranks(own_extremes());
    for (std::size_t i = 0; i < kCharges; ++i) {
      put_charge(all[i], -1);
      put_charge(all[all.size() - 1 - i], 1);
    }
    charges_.exchange_border(grid_, network_);
  }

  // Returns the ten smallest, then the ten largest of this rank's points.
  std::vector<Charge> own_extremes() const {
    std::vector<Charge> kept;
    const auto by_value = [](const Charge& a, const Charge& b) { return a.value < b.value; };
    const auto keep_extremes = [&] {
      std::ranges::sort(kept, by_value);
      if (kept.size() > 2 * kCharges) kept.erase(kept.begin() + kCharges, kept.end() - kCharges);
    };
    const auto edge = static_cast<std::uint64_t>(problem_.edge);
    for_rows(charges_, [&](int y, int z) {
      const auto row = static_cast<std::uint64_t>(charges_.origin(1) + y) +
                       edge * static_cast<std::uint64_t>(charges_.origin(2) + z);
      const auto start = row * edge + static_cast<std::uint64_t>(charges_.origin(0));
      Random random(Random::kSeed, start);
      for (int x = 0; x < charges_.edge(0); ++x) {
        kept.push_back({random.next(), static_cast<double>(start) + x});
      }
      keep_extremes();
    });
    return kept;
  }

  // Returns the charges of all ranks, sorted.
  std::vector<Charge> of_all_ranks(const std::vector<Charge>& own) {
    constexpr std::size_t kEach = 2 * kCharges;
    std::vector<double> values(2 * kEach * network_.size());
    for (std::size_t i = 0; i < own.size() && i < kEach; ++i) {
      const std::size_t at = 2 * (kEach * network_.rank() + i);
      values[at] = own[i].value;
      values[at + 1] = own[i].place;
    }
    network_.sum(std::span(values));
    std::vector<Charge> all;
    for (std::size_t i = 0; i < values.size(); i += 2) {
      if (values[i] > 0) all.push_back({values[i], values[i + 1]});
    }
    std::ranges::sort(all, [](const Charge& a, const Charge& b) { return a.value < b.value; });
    return all;
  }

  void put_charge(const Charge& charge, double sign) {
    const auto place = static_cast<int>(charge.place);
    const int x = place % problem_.edge - charges_.origin(0);
    const int y = place / problem_.edge % problem_.edge - charges_.origin(1);
    const int z = place / problem_.edge / problem_.edge - charges_.origin(2);
    const auto is_inside = [&](int at, std::size_t d) { return at >= 0 && at < charges_.edge(d); };
    if (is_inside(x, 0) && is_inside(y, 1) && is_inside(z, 2)) charges_.row(y, z)[x] = sign;
  }

  Problem problem_;
  Communicator& network_;
  RankGrid grid_;
  Block charges_;
  std::vector<Level> levels_;  // the coarsest first
};

}  // namespace

std::unique_ptr<Kernel> make_mg(char size, Communicator& network) {
  const auto problem = mg_problem_of(size);
  return problem ? std::make_unique<Mg>(*problem, network) : nullptr;
}

}  // namespace score::npb
