#pragma once
// Measured history of the jobs on one node: the second mode of the gang matrix. Fed with switches
// and, for jobs that ran or filled without a switch, with the jobs of a sample. Pure.

#include "monitor/sampler/samples.hpp"

#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace score::monitor {

struct Run {
  JobId job;
  TimePoint start{};
  std::optional<TimePoint> end;  // none: it still runs

  friend bool operator==(const Run&, const Run&) = default;
};

class RunHistory {
 public:
  // Runs that ended longer ago are forgotten; so are the oldest beyond kMostRuns.
  static constexpr Duration kKept = 6s;
  static constexpr std::size_t kMostRuns = 8'192;

  void feed(const NodeSample& sample);

  // A job that no sample has any more ran until its last task ended, if that was reported before.
  void task_ended(JobId job, TimePoint at) { last_task_[job] = at; }

  // Nothing is known from `now` on: running jobs count as ended.
  void interrupt(TimePoint now);

  // Those that touch [from, to), by start; those that still run last.
  [[nodiscard]] std::vector<Run> between(TimePoint from, TimePoint to) const {
    return turns_.between(from, to);
  }

  // ... when jobs ran at idle priority.
  [[nodiscard]] std::vector<Run> fills_between(TimePoint from, TimePoint to) const {
    return fills_.between(from, to);
  }

 private:
  class Track {
   public:
    void begin(JobId job, TimePoint at);
    void end(JobId job, TimePoint at);
    void end_all(TimePoint at);
    void forget(TimePoint before);

    // Those without an end; a copy, to end some of them.
    [[nodiscard]] std::vector<Run> open() const { return open_; }

    [[nodiscard]] std::vector<Run> between(TimePoint from, TimePoint to) const;

   private:
    std::vector<Run> open_;  // by job, without an end
    std::deque<Run> ended_;
  };

  [[nodiscard]] TimePoint end_of(const Run& run, TimePoint taken) const;

  Track turns_, fills_;
  std::map<JobId, TimePoint> last_task_;  // when one ended, of lately
};

}  // namespace score::monitor
