#pragma once
// The order of slices in time, the same for all nodes, and how long each row has run by it.

#include "base/time.hpp"
#include "gang/matrix/matrix.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace score::gang {

using base::Duration;
using base::TimePoint;

// Repeated from `start` until another cycle takes over. Without rows nothing runs.
struct Cycle {
  std::uint64_t serial = 0;          // distinguishes cycles
  TimePoint start{};                 // phase 0
  Duration quantum{1};               // of each slice
  std::vector<RowId> rows;           // in the order of the matrix
  std::vector<std::uint32_t> order;  // [slice] -> index into rows
  std::vector<Duration> run_before;  // [row index]: what it had run by `start`, over all cycles

  [[nodiscard]] Duration length() const {
    return quantum * static_cast<std::int64_t>(order.size());
  }

  [[nodiscard]] std::optional<std::size_t> index_of(RowId row) const;
  // Slices of the row in one cycle.
  [[nodiscard]] std::uint32_t slices_of(RowId row) const;
  // The first boundary of slices at or after t, t >= start.
  [[nodiscard]] TimePoint boundary_from(TimePoint t) const;
  // How long the row has run by t, over all cycles; before `start` it is what it was at `start`.
  [[nodiscard]] Duration run_by(RowId row, TimePoint t) const;
  // Whole slices from `start` to t, the last counted if at least half of it lies before t.
  [[nodiscard]] std::uint64_t slices_by(TimePoint t) const;
};

// The cycle in force and the one that follows, if that has been announced.
class CycleClock {
 public:
  // The newest, perhaps not yet begun.
  [[nodiscard]] const Cycle& newest() const { return newest_; }

  // In force just before t. Only the last two are remembered.
  [[nodiscard]] const Cycle& before(TimePoint t) const {
    return t <= newest_.start ? before_ : newest_;
  }

  // Takes over at next.start, which is not before newest().start; fills in run_before. At the very
  // start of the newest, which then never comes into force, it replaces that one.
  void append(Cycle next);

  // Exact for t >= the start of the one before the newest.
  [[nodiscard]] Duration run_by(RowId row, TimePoint t) const { return before(t).run_by(row, t); }

 private:
  Cycle before_;
  Cycle newest_;
};

}  // namespace score::gang
