// Stores values at the points of a cell, and at a border around it.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace score::npb::cfd {

using Point = std::array<int, 3>;  // x, y, z

constexpr std::size_t kDimensions = 3;

// Describes a part of the cube of points 0 ... points - 1 along each dimension. Local indices begin
// at 0.
struct Cell {
  Point place{};   // position among the cells of the whole cube
  Point origin{};  // the first point, in the whole cube
  Point edge{};    // points along each dimension
  Point begin{};  // interior of the cube: begin <= index < end; the values on its surface are given
  Point end{};
};

template <class T>
class Field {
 public:
  // The indices go from -border to edge + border - 1.
  Field(const Point& edge, int border, const T& value = {}) : border_(border) {
    std::size_t size = 1;
    for (std::size_t d = 0; d < kDimensions; ++d) {
      strides_[d] = static_cast<std::ptrdiff_t>(size);
      size *= static_cast<std::size_t>(edge[d] + 2 * border);
    }
    values_.assign(size, value);
  }

  T* at(int x, int y, int z) { return values_.data() + index(x, y, z); }

  [[nodiscard]] const T* at(int x, int y, int z) const { return values_.data() + index(x, y, z); }

  T* at(const Point& p) { return at(p[0], p[1], p[2]); }

  [[nodiscard]] const T* at(const Point& p) const { return at(p[0], p[1], p[2]); }

  // Returns the distance between two neighbours along a dimension.
  [[nodiscard]] std::ptrdiff_t stride(std::size_t dimension) const { return strides_[dimension]; }

  void fill(const T& value) { values_.assign(values_.size(), value); }

 private:
  [[nodiscard]] std::ptrdiff_t index(int x, int y, int z) const {
    return (x + border_) * strides_[0] + (y + border_) * strides_[1] + (z + border_) * strides_[2];
  }

  std::array<std::ptrdiff_t, kDimensions> strides_{};
  int border_;
  std::vector<T> values_;
};

// Calls visit(point) for begin <= point < end, x fastest.
template <class Visit>
void for_points(const Point& begin, const Point& end, Visit visit) {
  for (int z = begin[2]; z < end[2]; ++z) {
    for (int y = begin[1]; y < end[1]; ++y) {
      for (int x = begin[0]; x < end[0]; ++x) visit(Point{x, y, z});
    }
  }
}

}  // namespace score::npb::cfd
