#pragma once
// LateReports makes events for people from late switches: one per interval, with the share of late
// switches. A crowded machine has dozens per second, which would push everything else out of the
// list, or fill the journal. It is pure.

#include "base/time.hpp"

#include <optional>
#include <utility>

namespace score::monitor {

// Late is a type with a member `Duration late`.
template <class Late>
class LateReports {
 public:
  // Allows at most one event per `pause`; the first one is returned at once.
  explicit LateReports(Duration pause) : pause_(pause) {}

  struct Report {
    Late worst;
    std::uint64_t count = 1;     // since the last report
    std::uint64_t switches = 0;  // all since the last report, as note_switches() counted them
  };

  // Counts switches, late or not. Must be called before add() for the same ones.
  void note_switches(std::uint64_t count) { switches_ += count; }

  void add(const Late& late) {
    if (!waiting_) {
      waiting_ = Report{late, 1};
      return;
    }
    ++waiting_->count;
    if (late.late > waiting_->worst.late) waiting_->worst = late;
  }

  // Returns the report that is due now, if any.
  std::optional<Report> take(TimePoint now) {
    if (!waiting_ || (reported_ && now - *reported_ < pause_)) return std::nullopt;
    reported_ = now;
    waiting_->switches = std::exchange(switches_, 0);
    return std::exchange(waiting_, std::nullopt);
  }

 private:
  Duration pause_;
  std::uint64_t switches_ = 0;
  std::optional<Report> waiting_;
  std::optional<TimePoint> reported_;
};

}  // namespace score::monitor
