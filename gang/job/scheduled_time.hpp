#pragma once
// ScheduledTime is the time for which a job's gang has been scheduled, by the published timetables.

#include "gang/matrix/cycle.hpp"

#include <optional>
#include <vector>

namespace score::gang {

class ScheduledTime {
 public:
  // Restores a job that has been scheduled for `sum` by `now` and is in no row.
  void restore(TimePoint now, Duration sum);
  // Records that the job runs in these rows from `start` on. Returns false if it does so already.
  bool run_in(const std::vector<RowId>& rows, TimePoint start, const CycleClock& cycles);
  // Its processes are killed at `now`, whatever the timetable says.
  void stop(TimePoint now, const CycleClock& cycles);

  // Returns the rows of the newest timetable.
  [[nodiscard]] const std::vector<RowId>& rows() const { return newest_.rows; }

  [[nodiscard]] Duration at(TimePoint t, const CycleClock& cycles) const;
  // Returns the time from `now` until it has been scheduled for `want` more, by the newest cycle.
  // The result is at most about three cycles; it is `want` if the job is in no row.
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
