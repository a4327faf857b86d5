// Divides a cube of points among ranks, and exchanges borders between neighbours.
#pragma once

#include "bench/npb/cfd/field.hpp"
#include "bench/npb/cfd/flow.hpp"
#include "bench/npb/communicator.hpp"

#include <optional>
#include <span>
#include <vector>

namespace score::npb::cfd {

constexpr int kBorder = 2;     // points beyond a cell that the equations use
constexpr int kLeastEdge = 3;  // points of a cell along each dimension

class Partition {
 public:
  // Divides the cube for sweeps along every dimension. `size` is a square q * q, the cube is
  // divided into q * q * q cells, and each rank has q of them, one in every layer of every
  // dimension: at each stage of a sweep all ranks work. Returns nullopt if that is not possible
  // with cells of kLeastEdge points.
  static std::optional<Partition> of_diagonals(int points, Rank rank, Rank size);

  // Divides the cube for a wave from one corner to the opposite one. Each rank has one cell,
  // undivided along z. Any `size` that leaves kLeastEdge points is possible.
  static std::optional<Partition> of_pencils(int points, Rank rank, Rank size);

  // Returns this rank's cells. If there are several, each is one step further along z.
  [[nodiscard]] const std::vector<Cell>& cells() const { return cells_; }

  // Returns the number of cells of the whole cube along a dimension.
  [[nodiscard]] int layers(std::size_t dimension) const { return layers_[dimension]; }

  // Returns the index of this rank's cell in a layer.
  [[nodiscard]] std::size_t cell_in(std::size_t dimension, int layer) const;

  // Returns the rank whose cells follow (step 1) or precede (step -1) this rank's along a
  // dimension; nullopt if there is none.
  [[nodiscard]] std::optional<Rank> neighbour(std::size_t dimension, int step) const;

  // Fills the borders of `fields`, one per cell, with the neighbours' values: only behind faces,
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
  Point place_;  // position of the only cell; of diagonals: of the cell in the first layer of z
  bool is_diagonal_ = false;
  std::vector<Cell> cells_;
  std::vector<Message> sent_, received_;  // kept so that their memory is reused
};

}  // namespace score::npb::cfd
