#pragma once
// Selects the row of the next slice by stride scheduling (Waldspurger and Weihl 1995) over the rows
// of the matrix, and makes the cycle from that.

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

// The limit of slices per cycle: more would make timetables long and delay a row's next turn.
inline constexpr std::uint32_t kMaxCycleSlices = 256;

// Converts the weights to numbers of slices in one cycle. They are divided by their greatest common
// divisor. If the sum is still above kMaxCycleSlices, they are scaled down to it (each row keeps at
// least one slice).
std::vector<std::uint32_t> slices_per_cycle(const std::vector<WeightedRow>& rows);

// Returns one cycle with these numbers of slices, as indices of rows, evenly interleaved. Among
// equals the lower index goes first.
std::vector<std::uint32_t> interleave(const std::vector<std::uint32_t>& slices);

// Stride holds the passes. They survive a change of rows, so the row that has waited longest goes
// first, even if rows come and go often.
class Stride {
 public:
  // Sets the rows that take turns. A new row starts at the least pass and goes first on ties, but
  // not right after the first slice of a different new row. Otherwise a stream of short jobs would
  // keep all others waiting.
  void set_rows(const std::vector<WeightedRow>& rows);
  // Records that the row of this index (in the last set_rows) had a slice.
  void ran(std::size_t index);
  // Returns the index of the row that has the next slice.
  [[nodiscard]] std::size_t next() const;
  // Returns interleave() rotated so that its beginning agrees with next() for as long as possible.
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
