#pragma once
// For how long a job's gang has been scheduled, by the timetables that were published.

#include "gang/matrix/cycle.hpp"

#include <optional>
#include <vector>

namespace score::gang {

class ScheduledTime {
 public:
  // It has been scheduled for `sum` by `now`, and is in no row.
  void restore(TimePoint now, Duration sum);
  // From `start` on the job runs in these rows. False if it does already.
  bool run_in(const std::vector<RowId>& rows, TimePoint start, const CycleClock& cycles);
  // Its processes are killed at `now`, whatever the timetable says.
  void stop(TimePoint now, const CycleClock& cycles);

  // Of the newest timetable.
  [[nodiscard]] const std::vector<RowId>& rows() const { return newest_.rows; }

  [[nodiscard]] Duration at(TimePoint t, const CycleClock& cycles) const;
  // The time from `now` until it has been scheduled for `want` more, by the newest cycle; at most
  // about three cycles. `want` if it is in no row.
  [[nodiscard]] Duration time_to_run(Duration want, TimePoint now, const CycleClock& cycles) const;

 private:
  struct Span {
    TimePoint from{};
    Duration before{0};  // scheduled until `from`
    std::vector<RowId> rows;
    Duration base{0};  // sum of the rows' clocks at `from`
  };

  Span newest_;
  std::optional<Span> previous_;  // in force until newest_.from
};

}  // namespace score::gang
