#pragma once
// Whose slice is next: stride scheduling (Waldspurger and Weihl 1995) over the rows of the matrix,
// and the cycle that is made of it.

#include "base/ids.hpp"
#include "gang/matrix/matrix.hpp"

#include <cstdint>
#include <vector>

namespace score::gang {

struct WeightedRow {
  RowId row{0};
  std::uint32_t weight = 1;  // >= 1

  friend bool operator==(const WeightedRow&, const WeightedRow&) = default;
};

// Slices of a cycle: more would make timetables long, and a row's next turn far.
inline constexpr std::uint32_t kMaxCycleSlices = 256;

// The weights as numbers of slices in one cycle: divided by their greatest common divisor and, if
// the sum is still above kMaxCycleSlices, scaled down to it (each row keeps at least one slice).
std::vector<std::uint32_t> slices_per_cycle(const std::vector<WeightedRow>& rows);

// One cycle with these numbers of slices, as indices of rows, evenly interleaved; among equals
// the lower index goes first.
std::vector<std::uint32_t> interleave(const std::vector<std::uint32_t>& slices);

// The passes. They survive a change of rows, so the row that has waited longest goes first however
// often rows come and go.
class Stride {
 public:
  // Sets the rows that take turns. A new row starts at the least pass and goes first on ties, but
  // not right after another new row's first slice: else a stream of short jobs would keep all
  // others waiting.
  void set_rows(const std::vector<WeightedRow>& rows);
  // The row of this index (in the last set_rows) had a slice.
  void ran(std::size_t index);
  // Whose slice is next.
  [[nodiscard]] std::size_t next() const;
  // interleave() turned so that it begins as next() would go on, as long as possible.
  [[nodiscard]] std::vector<std::uint32_t> plan_cycle() const;

 private:
  struct Entry {
    WeightedRow row;
    std::uint64_t pass = 0;
    std::uint64_t last_ran = 0;  // number of the slice; 0: never
    bool fresh = true;           // has not had a slice yet
  };

  std::vector<Entry> entries_;
  std::uint64_t slices_ = 0;
  bool last_was_fresh_ = false;
};

}  // namespace score::gang
