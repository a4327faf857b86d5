#include "gang/job/scheduled_time.hpp"

#include <algorithm>

namespace score::gang {

namespace {

Duration clock_sum(const std::vector<RowId>& rows, TimePoint t, const CycleClock& cycles) {
  Duration sum{0};
  for (const RowId row : rows) sum += cycles.run_by(row, t);
  return sum;
}

}  // namespace

void ScheduledTime::restore(TimePoint now, Duration sum) {
  newest_ = {now, sum, {}, {}};
  previous_.reset();
}

bool ScheduledTime::run_in(const std::vector<RowId>& rows, TimePoint start,
                           const CycleClock& cycles) {
  if (rows == newest_.rows) return false;
  if (newest_.from < start) {
    previous_ = newest_;
    newest_ = {start, at(start, cycles), {}, {}};
  }
  newest_.rows = rows;
  newest_.base = clock_sum(rows, newest_.from, cycles);
  return true;
}

void ScheduledTime::stop(TimePoint now, const CycleClock& cycles) {
  restore(now, at(now, cycles));
}

Duration ScheduledTime::at(TimePoint t, const CycleClock& cycles) const {
  const Span& span = t < newest_.from && previous_ ? *previous_ : newest_;
  if (t <= span.from) return span.before;
  return span.before + clock_sum(span.rows, t, cycles) - span.base;
}

Duration ScheduledTime::time_to_run(Duration want, TimePoint now, const CycleClock& cycles) const {
  const Cycle& cycle = cycles.newest();
  if (newest_.rows.empty() || cycle.order.empty()) return want;
  const Duration have = at(now, cycles);
  TimePoint t = std::max(now, cycle.start);
  const TimePoint give_up = t + cycle.length() * 3;
  while (t < give_up) {
    const TimePoint next = cycle.boundary_from(t + Duration{1});
    const Duration got = at(next, cycles) - have;
    if (got >= want) return next - (got - want) - now;
    t = next;
  }
  return t - now;
}

}  // namespace score::gang
