// This file is tested by stride_test.cpp and properties_test.cpp.
#include "gang/matrix/cycle.hpp"

#include "base/assert.hpp"

#include <algorithm>

namespace score::gang {

std::optional<std::size_t> Cycle::index_of(RowId row) const {
  const auto found = std::find(rows.begin(), rows.end(), row);
  if (found == rows.end()) return std::nullopt;
  return static_cast<std::size_t>(found - rows.begin());
}

std::uint32_t Cycle::slices_of(RowId row) const {
  const auto index = index_of(row);
  if (!index) return 0;
  return static_cast<std::uint32_t>(
      std::count(order.begin(), order.end(), static_cast<std::uint32_t>(*index)));
}

TimePoint Cycle::boundary_from(TimePoint t) const {
  const Duration into = (t - start) % quantum;
  return into == Duration::zero() ? t : t + (quantum - into);
}

Duration Cycle::run_by(RowId row, TimePoint t) const {
  const auto index = index_of(row);
  if (!index) return Duration::zero();
  Duration run = run_before[*index];
  if (t <= start || order.empty()) return run;
  const Duration phase = (t - start) % length();
  run += (t - start) / length() * quantum * slices_of(row);
  for (std::size_t slice = 0; slice < order.size(); ++slice) {
    const Duration offset = quantum * static_cast<std::int64_t>(slice);
    if (offset >= phase) break;
    if (order[slice] == *index) run += std::min(quantum, phase - offset);
  }
  return run;
}

std::uint64_t Cycle::slices_by(TimePoint t) const {
  if (t <= start) return 0;
  return static_cast<std::uint64_t>((t - start + quantum / 2) / quantum);
}

void CycleClock::append(Cycle next) {
  SCORE_ASSERT(next.start >= newest_.start, "cycles begin in order");
  const Cycle& old = next.start == newest_.start ? before_ : newest_;
  next.run_before.clear();
  for (const RowId row : next.rows) next.run_before.push_back(old.run_by(row, next.start));
  if (next.start > newest_.start) before_ = std::move(newest_);
  newest_ = std::move(next);
}

}  // namespace score::gang
