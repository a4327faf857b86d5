#include "bench/npb/mg_grid.hpp"

namespace score::npb {

RankGrid RankGrid::of(Rank rank, Rank size) {
  RankGrid grid;
  std::size_t dimension = 0;
  for (; size > 1; size /= 2, dimension = (dimension + 1) % 3) grid.ranks[dimension] *= 2;
  auto rest = static_cast<int>(rank);
  for (std::size_t d = 0; d < 3; ++d) {
    grid.place[d] = rest % grid.ranks[d];
    rest /= grid.ranks[d];
  }
  return grid;
}

Rank RankGrid::neighbour(std::size_t dimension, int step) const {
  std::array<int, 3> there = place;
  there[dimension] = (there[dimension] + step + ranks[dimension]) % ranks[dimension];
  return static_cast<Rank>(there[0] + ranks[0] * (there[1] + ranks[1] * there[2]));
}

Block::Block(int edge, const RankGrid& grid) : edges_{}, origins_{}, strides_{} {
  std::size_t stride = 1;
  for (std::size_t d = 0; d < 3; ++d) {
    edges_[d] = edge / grid.ranks[d];
    origins_[d] = grid.place[d] * edges_[d];
    strides_[d] = stride;
    stride *= static_cast<std::size_t>(edges_[d]) + 2;
  }
  values_.resize(stride);
}

template <class Move>
void Block::for_layer(std::size_t dimension, int place, Move move) {
  const std::size_t a = dimension == 0 ? 1 : 0;
  const std::size_t b = dimension == 2 ? 1 : 2;
  const std::size_t base = strides_[dimension] * static_cast<std::size_t>(place + 1);
  for (std::size_t j = 0; j < static_cast<std::size_t>(edges_[b]) + 2; ++j) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(edges_[a]) + 2; ++i) {
      move(values_[base + i * strides_[a] + j * strides_[b]]);
    }
  }
}

std::vector<double> Block::layer(std::size_t dimension, int place) {
  std::vector<double> found;
  for_layer(dimension, place, [&found](const double& value) { found.push_back(value); });
  return found;
}

void Block::set_layer(std::size_t dimension, int place, std::span<const double> values) {
  std::size_t next = 0;
  for_layer(dimension, place, [&](double& value) { value = values[next++]; });
}

// Exchanges one dimension after the other, so that corners arrive by way of two or three
// neighbours.
void Block::exchange_border(const RankGrid& grid, Communicator& network) {
  for (std::size_t d = 0; d < 3; ++d) {
    const int last = edges_[d] - 1;
    std::vector<double> low = layer(d, 0);
    const std::vector<double> high = layer(d, last);
    if (grid.ranks[d] == 1) {
      set_layer(d, -1, high);
      set_layer(d, last + 1, low);
      continue;
    }
    const std::size_t points = low.size();
    std::vector<double> received(2 * points);  // the layers above and below
    const std::span<double> above = std::span(received).first(points);
    const std::span<double> below = std::span(received).last(points);
    const Rank next = grid.neighbour(d, 1);
    const Rank previous = grid.neighbour(d, -1);
    if (next == previous) {  // one neighbour gets both layers in one part
      low.insert(low.end(), high.begin(), high.end());
      exchange(network, next, std::span<const double>(low), std::span<double>(received));
    } else {
      const std::array<Outgoing, 2> out{Outgoing{previous, std::as_bytes(std::span(low))},
                                        Outgoing{next, std::as_bytes(std::span(high))}};
      const std::array<Incoming, 2> in{Incoming{next, std::as_writable_bytes(above)},
                                       Incoming{previous, std::as_writable_bytes(below)}};
      network.transfer(out, in);
    }
    set_layer(d, last + 1, above);
    set_layer(d, -1, below);
  }
}

}  // namespace score::npb
