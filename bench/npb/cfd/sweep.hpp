// Runs the sweeps of SP and BT along the lines of one dimension, through all layers of cells.
#pragma once

#include "bench/npb/cfd/solution.hpp"

#include <memory>
#include <utility>

namespace score::npb::cfd {

// Lists the two other dimensions.
template <std::size_t D>
constexpr std::array<std::size_t, 2> kAcross{D == 0 ? 1 : 0, D == 2 ? 1 : 2};

template <std::size_t D>
std::size_t lines_of(const Cell& cell) {
  std::size_t lines = 1;
  for (const std::size_t d : kAcross<D>) {
    lines *= static_cast<std::size_t>(cell.end[d] - cell.begin[d]);
  }
  return lines;
}

// Calls visit(a point of the line, number of the line) for each line inside the cube.
template <std::size_t D, class Visit>
void for_lines(const Cell& cell, Meter& meter, Visit visit) {
  const auto [inner, outer] = kAcross<D>;
  std::size_t line = 0;
  Point at{};
  for (at[outer] = cell.begin[outer]; at[outer] < cell.end[outer]; ++at[outer]) {
    for (at[inner] = cell.begin[inner]; at[inner] < cell.end[inner]; ++at[inner]) visit(at, line++);
    meter.tick();
  }
}

// Passes `width` numbers per line from one layer to the next; the first layer gets zeros.
class Sweep {
 public:
  explicit Sweep(Solution& solution) : solution_(solution) {}

  // Calls visit(cell, carried) for this rank's cell in each layer in turn, from the first one (step
  // 1) or the last one (step -1) on. `visit` replaces the carried numbers by its own. Collective.
  template <std::size_t D, class Visit>
  void run(int step, std::size_t width, Visit visit) {
    Partition& partition = solution_.partition;
    const int layers = partition.layers(D);
    const auto cell_at = [&](int stage) {
      return partition.cell_in(D, step > 0 ? stage : layers - 1 - stage);
    };
    const auto size_at = [&](int stage) {
      return lines_of<D>(partition.cells()[cell_at(stage)]) * width;
    };
    carried_.assign(size_at(0), 0.0);
    for (int stage = 0; stage < layers; ++stage) {
      visit(cell_at(stage), std::span(carried_));
      if (stage + 1 < layers) pass_on(D, step, size_at(stage + 1));
    }
  }

 private:
  // At the same time, all ranks send to the next one and receive from the previous one.
  void pass_on(std::size_t dimension, int step, std::size_t size) {
    next_.resize(size);
    const Outgoing out{*solution_.partition.neighbour(dimension, step),
                       std::as_bytes(std::span(carried_))};
    const Incoming in{*solution_.partition.neighbour(dimension, -step),
                      std::as_writable_bytes(std::span(next_))};
    solution_.network.transfer({&out, 1}, {&in, 1});
    std::swap(carried_, next_);
  }

  Solution& solution_;
  std::vector<double> carried_, next_;
};

// Makes a kernel of a problem whose cells lie on diagonals. Returns null if there is no problem, or
// if it cannot be divided among so many ranks.
template <class Solver>
std::unique_ptr<Kernel> make_on_diagonals(const Problem* problem, Communicator& network) {
  if (problem == nullptr) return nullptr;
  const auto partition = Partition::of_diagonals(problem->points, network.rank(), network.size());
  return partition ? std::make_unique<Solver>(*problem, *partition, network) : nullptr;
}

}  // namespace score::npb::cfd
