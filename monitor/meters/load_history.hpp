#pragma once
// LoadHistory keeps what the cluster did over hours and days, in bounded memory: averages of 10 s
// for two hours, of a minute for a day and of ten minutes for a week. It is pure.

#include "base/time.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>

namespace score::monitor {

// HistoryTotals has sums over all nodes that never go back, and the state at that moment.
struct HistoryTotals {
  WallTime at{};
  Duration user{0}, system{0}, filled{0};  // processor time of jobs
  Duration busy{0}, overhead{0};           // node time with a job, and of it that for switching
  std::uint64_t switches = 0, late = 0;
  std::uint32_t jobs = 0, nodes = 0, cores = 0;  // active jobs; nodes that are up, and their cores
};

// HistoryPoint has the sums over one step, or the part of it that was observed.
struct HistoryPoint {
  WallTime begin{};  // a multiple of the step
  Duration observed{0};
  Duration user{0}, system{0}, filled{0};
  Duration busy{0}, overhead{0};
  std::uint64_t switches = 0, late = 0;
  double job_seconds = 0, node_seconds = 0, core_seconds = 0;

  friend bool operator==(const HistoryPoint&, const HistoryPoint&) = default;
};

class LoadHistory {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(10);  // between two totals
  // A longer pause, for example of a machine that slept, is left out.
  static constexpr Duration kLongestGap = std::chrono::seconds(60);

  struct Ring {
    Duration step{0};
    std::size_t most = 0;  // points
    std::deque<HistoryPoint> points{};
  };

  void add(const HistoryTotals& totals);

  // Returns the points of this step, oldest first; nothing if there is no such step.
  [[nodiscard]] const std::deque<HistoryPoint>* points(Duration step) const;

  [[nodiscard]] std::span<const Ring> rings() const { return rings_; }

  // Replaces the points of this step, after a restart. A point that does not begin at a multiple of
  // the step, or not after the point before, is left out, and so are the oldest that do not fit.
  void restore(Duration step, std::span<const HistoryPoint> points);

 private:
  std::optional<HistoryTotals> last_;
  Ring rings_[3] = {{std::chrono::seconds(10), 720},
                    {std::chrono::minutes(1), 1440},
                    {std::chrono::minutes(10), 1008}};
};

}  // namespace score::monitor
