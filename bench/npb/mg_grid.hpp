// Divides a periodic cube of numbers among a grid of ranks, for MG.
#pragma once

#include "bench/npb/communicator.hpp"

#include <array>
#include <cstddef>
#include <vector>

namespace score::npb {

// Describes the grid of ranks and the position of this rank in it; x, y, z.
struct RankGrid {
  std::array<int, 3> ranks{1, 1, 1};
  std::array<int, 3> place{0, 0, 0};

  // `size` must be a power of two: the three numbers differ at most by a factor of two.
  static RankGrid of(Rank rank, Rank size);

  // Returns the rank `step` further along a dimension, cyclically.
  [[nodiscard]] Rank neighbour(std::size_t dimension, int step) const;

  [[nodiscard]] bool is_alone() const { return ranks[0] * ranks[1] * ranks[2] == 1; }
};

// Holds a rank's part of a cube, and a border of one point: indices go from -1 to the edge.
class Block {
 public:
  // `edge` is the number of points of the whole cube along each dimension, a multiple of the ranks
  // there.
  Block(int edge, const RankGrid& grid);

  [[nodiscard]] int edge(std::size_t dimension) const { return edges_[dimension]; }

  // Returns the first point of this part in the whole cube.
  [[nodiscard]] int origin(std::size_t dimension) const { return origins_[dimension]; }

  // The points (-1 ... edge, y, z) are row(y, z)[-1 ... edge].
  double* row(int y, int z) { return &values_[index(y, z)]; }

  [[nodiscard]] const double* row(int y, int z) const { return &values_[index(y, z)]; }

  // Returns all values, including the border.
  std::vector<double>& values() { return values_; }

  void clear() { values_.assign(values_.size(), 0.0); }

  // Fills the border with the neighbours' values. Collective.
  void exchange_border(const RankGrid& grid, Communicator& network);

 private:
  [[nodiscard]] std::size_t index(int y, int z) const {
    return 1 + strides_[1] * static_cast<std::size_t>(y + 1) +
           strides_[2] * static_cast<std::size_t>(z + 1);
  }

  // Visits the points of the layer at `place` of a dimension, including the border's corners.
  template <class Move>
  void for_layer(std::size_t dimension, int place, Move move);
  std::vector<double> layer(std::size_t dimension, int place);
  void set_layer(std::size_t dimension, int place, std::span<const double> values);

  std::array<int, 3> edges_;
  std::array<int, 3> origins_;
  std::array<std::size_t, 3> strides_;
  std::vector<double> values_;
};

}  // namespace score::npb
