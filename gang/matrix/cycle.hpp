#pragma once
// A cycle is the order of slices in time, the same for all nodes. It also yields how long each row
// has run.

#include "base/time.hpp"
#include "gang/matrix/matrix.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace score::gang {

using base::Duration;
using base::TimePoint;

// The cycle is repeated from `start` until the next cycle takes over. Without rows nothing runs.
struct Cycle {
  std::uint64_t serial = 0;          // distinguishes cycles
  TimePoint start{};                 // time of phase 0
  Duration quantum{1};               // length of each slice
  std::vector<RowId> rows;           // in the order of the matrix
  std::vector<std::uint32_t> order;  // [slice] -> index into rows
  std::vector<Duration> run_before;  // [row index]: how long it had run by `start`, over all cycles

  [[nodiscard]] Duration length() const {
    return quantum * static_cast<std::int64_t>(order.size());
  }

  [[nodiscard]] std::optional<std::size_t> index_of(RowId row) const;
  // Returns the number of slices of the row in one cycle.
  [[nodiscard]] std::uint32_t slices_of(RowId row) const;
  // Returns the first boundary of slices at or after t, t >= start.
  [[nodiscard]] TimePoint boundary_from(TimePoint t) const;
  // Returns how long the row has run by t, over all cycles. Before `start` the value is that at
  // `start`.
  [[nodiscard]] Duration run_by(RowId row, TimePoint t) const;
  // Returns the number of whole slices from `start` to t. The last one counts if at least half of
  // it lies before t.
  [[nodiscard]] std::uint64_t slices_by(TimePoint t) const;
};

// CycleClock keeps the cycle in force and its announced successor, if any.
class CycleClock {
 public:
  // Returns the newest cycle, which may not have begun.
  [[nodiscard]] const Cycle& newest() const { return newest_; }

  // Returns the cycle in force just before t. Only the last two are remembered.
  [[nodiscard]] const Cycle& before(TimePoint t) const {
    return t <= newest_.start ? before_ : newest_;
  }

  // Appends a cycle, which takes over at next.start and gets its run_before. next.start must not be
  // before newest().start. If they are equal, the newest never comes into force and is replaced.
  void append(Cycle next);

  // Returns an exact value for t >= the start of the cycle before the newest.
  [[nodiscard]] Duration run_by(RowId row, TimePoint t) const { return before(t).run_by(row, t); }

 private:
  Cycle before_;
  Cycle newest_;
};

}  // namespace score::gang
