// How a cube of points is divided among ranks, and what neighbours exchange.
#pragma once

#include "bench/npb/cfd/field.hpp"
#include "bench/npb/cfd/flow.hpp"
#include "bench/npb/communicator.hpp"

#include <optional>
#include <span>
#include <vector>

namespace score::npb::cfd {

constexpr int kBorder = 2;     // points beyond a cell that the equations look at
constexpr int kLeastEdge = 3;  // points of a cell along each dimension

class Partition {
 public:
  // For sweeps along every dimension: `size` is a square q * q, the cube is divided into q * q * q
  // cells, and each rank has q of them, one in every layer of every dimension: at each stage of a
  // sweep all ranks work. Nullopt if that is not possible with cells of kLeastEdge points.
  static std::optional<Partition> of_diagonals(int points, Rank rank, Rank size);

  // For a wave from one corner to the other: one cell a rank, whole along z. Any size that leaves
  // kLeastEdge points.
  static std::optional<Partition> of_pencils(int points, Rank rank, Rank size);

  // This rank's. Of several, each is one step further along z.
  [[nodiscard]] const std::vector<Cell>& cells() const { return cells_; }

  // Cells of the whole cube along a dimension.
  [[nodiscard]] int layers(std::size_t dimension) const { return layers_[dimension]; }

  // Index of this rank's cell in a layer.
  [[nodiscard]] std::size_t cell_in(std::size_t dimension, int layer) const;

  // The rank whose cells follow (step 1) or precede (step -1) this rank's along a dimension;
  // nullopt if there is none.
  [[nodiscard]] std::optional<Rank> neighbour(std::size_t dimension, int step) const;

  // Fills the borders of `fields`, one per cell, with what the neighbours have: only behind faces,
  // not behind edges and corners. Collective.
  void exchange_borders(std::span<Field<State>> fields, Communicator& network);

 private:
  struct Message {
    Rank other = 0;
    std::vector<double> values;
    std::size_t next = 0;  // the first value that has not been taken
  };

  Partition(const Point& ranks, const Point& place) : layers_(ranks), place_(place) {}

  void add_cell(int points, const Point& place);
  [[nodiscard]] bool is_coarse() const;
  template <class Visit>
  void for_faces(std::size_t dimension, int step, Visit visit) const;
  void collect(std::span<const Field<State>> fields);
  void distribute(std::span<Field<State>> fields);
  static Message& message_with(std::vector<Message>& messages, Rank other);

  Point layers_;
  Point place_;  // of the only cell; of diagonals: of the cell in the first layer of z
  bool is_diagonal_ = false;
  std::vector<Cell> cells_;
  std::vector<Message> sent_, received_;  // kept: their memory is used again
};

}  // namespace score::npb::cfd
