#include "bench/npb/cfd/partition.hpp"

#include <algorithm>

namespace score::npb::cfd {

namespace {

int rounded_root(Rank size) {
  int root = 1;
  while (static_cast<Rank>((root + 1) * (root + 1)) <= size) ++root;
  return root;
}

// Returns the number of points before part `index` of `parts`. If there is a rest, the first parts
// have one more point.
int points_before(int points, int parts, int index) {
  return points / parts * index + std::min(index, points % parts);
}

int modulo(int value, int divisor) {
  return (value % divisor + divisor) % divisor;
}

}  // namespace

// Assigns cell (x, y, z) to rank (x - z, y + z) of a square of ranks, both modulo its edge.
std::optional<Partition> Partition::of_diagonals(int points, Rank rank, Rank size) {
  const int edge = rounded_root(size);
  if (static_cast<Rank>(edge * edge) != size) return std::nullopt;
  const int x = static_cast<int>(rank) % edge;
  const int y = static_cast<int>(rank) / edge;
  Partition partition({edge, edge, edge}, {x, y, 0});
  partition.is_diagonal_ = true;
  for (int z = 0; z < edge; ++z) {
    partition.add_cell(points, {(x + z) % edge, modulo(y - z, edge), z});
  }
  return partition.is_coarse() ? std::optional(partition) : std::nullopt;
}

std::optional<Partition> Partition::of_pencils(int points, Rank rank, Rank size) {
  int along_x = rounded_root(size);
  while (size % static_cast<Rank>(along_x) != 0) --along_x;
  const Point ranks{along_x, static_cast<int>(size) / along_x, 1};
  Partition partition(ranks,
                      {static_cast<int>(rank) % along_x, static_cast<int>(rank) / along_x, 0});
  partition.add_cell(points, partition.place_);
  return partition.is_coarse() ? std::optional(partition) : std::nullopt;
}

void Partition::add_cell(int points, const Point& place) {
  Cell cell;
  cell.place = place;
  for (std::size_t d = 0; d < kDimensions; ++d) {
    cell.origin[d] = points_before(points, layers_[d], place[d]);
    const int behind = points_before(points, layers_[d], place[d] + 1);
    cell.edge[d] = behind - cell.origin[d];
    cell.begin[d] = cell.origin[d] == 0 ? 1 : 0;
    cell.end[d] = behind == points ? cell.edge[d] - 1 : cell.edge[d];
  }
  cells_.push_back(cell);
}

bool Partition::is_coarse() const {
  return std::ranges::all_of(cells_, [](const Cell& cell) {
    return std::ranges::all_of(cell.edge, [](int edge) { return edge >= kLeastEdge; });
  });
}

std::size_t Partition::cell_in(std::size_t dimension, int layer) const {
  const auto found = std::ranges::find_if(
      cells_, [&](const Cell& cell) { return cell.place[dimension] == layer; });
  return static_cast<std::size_t>(found - cells_.begin());
}

std::optional<Rank> Partition::neighbour(std::size_t dimension, int step) const {
  const int edge = layers_[dimension];
  int x = place_[0];
  int y = place_[1];
  if (edge == 1) return std::nullopt;
  if (!is_diagonal_) {
    (dimension == 0 ? x : y) += step;
    if (x < 0 || y < 0 || x >= layers_[0] || y >= layers_[1]) return std::nullopt;
    return static_cast<Rank>(x + layers_[0] * y);
  }
  if (dimension == 2) {
    x -= step;
    y += step;
  } else {
    (dimension == 0 ? x : y) += step;
  }
  return static_cast<Rank>(modulo(x, edge) + edge * modulo(y, edge));
}

// Calls visit(index of a cell) for each cell that has a neighbouring cell in this direction, by
// their layer. The neighbour finds them in the same order.
template <class Visit>
void Partition::for_faces(std::size_t dimension, int step, Visit visit) const {
  for (int layer = 0; layer < layers_[dimension]; ++layer) {
    if (layer + step < 0 || layer + step >= layers_[dimension]) continue;
    if (const std::size_t index = cell_in(dimension, layer); index < cells_.size()) visit(index);
  }
}

Partition::Message& Partition::message_with(std::vector<Message>& messages, Rank other) {
  for (Message& each : messages) {
    if (each.other == other) return each;
  }
  messages.push_back({other, {}, 0});
  return messages.back();
}

namespace {

// Visits the first (step -1) or last points of a cell towards a face; with `is_beyond`, those
// behind it.
template <class Visit>
void for_layer(const Cell& cell, std::size_t dimension, int step, bool is_beyond, Visit visit) {
  Point begin{};
  Point end = cell.edge;
  if (step > 0) begin[dimension] = is_beyond ? end[dimension] : end[dimension] - kBorder;
  if (step < 0) begin[dimension] = is_beyond ? -kBorder : 0;
  end[dimension] = begin[dimension] + kBorder;
  for_points(begin, end, visit);
}

std::size_t points_behind_face(const Cell& cell, std::size_t dimension) {
  std::size_t points = kBorder;
  for (std::size_t d = 0; d < kDimensions; ++d) {
    if (d != dimension) points *= static_cast<std::size_t>(cell.edge[d]);
  }
  return points;
}

// Calls `visit` for each direction in which values travel.
template <class Visit>
void for_directions(Visit visit) {
  for (std::size_t d = 0; d < kDimensions; ++d) {
    for (const int step : {-1, 1}) visit(d, step);
  }
}

}  // namespace

// Sends one message to each neighbour. If two ranks are neighbours twice, the message contains both
// parts, in the order of the directions.
void Partition::exchange_borders(std::span<Field<State>> fields, Communicator& network) {
  collect(fields);
  std::vector<Outgoing> out;
  std::vector<Incoming> in;
  for (const Message& each : sent_) {
    out.push_back({each.other, std::as_bytes(std::span(each.values))});
  }
  for (Message& each : received_) {
    in.push_back({each.other, std::as_writable_bytes(std::span(each.values))});
  }
  network.transfer(out, in);
  distribute(fields);
}

// Fills the messages to send and sets the lengths of those to receive.
void Partition::collect(std::span<const Field<State>> fields) {
  for (Message& each : sent_) each.values.clear();
  for (Message& each : received_) each.values.clear();
  for_directions([&](std::size_t d, int step) {
    if (const auto other = neighbour(d, step)) {
      auto& values = message_with(sent_, *other).values;
      for_faces(d, step, [&](std::size_t i) {
        for_layer(cells_[i], d, step, false, [&](const Point& p) {
          const State& u = *fields[i].at(p);
          values.insert(values.end(), u.begin(), u.end());
        });
      });
    }
    if (const auto other = neighbour(d, -step)) {
      auto& values = message_with(received_, *other).values;
      for_faces(d, -step, [&](std::size_t i) {
        values.resize(values.size() + points_behind_face(cells_[i], d) * kQuantities);
      });
    }
  });
}

void Partition::distribute(std::span<Field<State>> fields) {
  for (Message& each : received_) each.next = 0;
  for_directions([&](std::size_t d, int step) {
    const auto other = neighbour(d, -step);
    if (!other) return;
    Message& message = message_with(received_, *other);
    for_faces(d, -step, [&](std::size_t i) {
      for_layer(cells_[i], d, -step, true, [&](const Point& p) {
        std::copy_n(&message.values[message.next], kQuantities, fields[i].at(p)->begin());
        message.next += kQuantities;
      });
    });
  });
}

}  // namespace score::npb::cfd
