#pragma once
// RunHistory is the measured history of the jobs on one node: the second mode of the gang matrix.
// It is fed with switches and, for jobs that ran or filled without a switch, with the jobs of a
// sample. It is pure.

#include "monitor/sampler/samples.hpp"

#include <deque>
#include <map>
#include <optional>
#include <vector>

namespace score::monitor {

struct JobRun {
  JobId job;
  TimePoint start{};
  std::optional<TimePoint> end;  // none: it still runs

  friend bool operator==(const JobRun&, const JobRun&) = default;
};

class RunHistory {
 public:
  // Runs that ended longer ago are dropped, as are the oldest beyond kMostRuns.
  static constexpr Duration kKept = 6s;
  static constexpr std::size_t kMostRuns = 8'192;

  void feed(const NodeSample& sample);

  // Notes the end of a task. A job that no sample has any more ran until its last task ended, if
  // that was reported before.
  void task_ended(JobId job, TimePoint at) { last_task_[job] = at; }

  // Notes that nothing is known from `now` on, so running jobs count as ended.
  void interrupt(TimePoint now);

  // Returns the runs that touch [from, to), by start; those that still run come last.
  [[nodiscard]] std::vector<JobRun> between(TimePoint from, TimePoint to) const {
    return turns_.between(from, to);
  }

  // Returns the runs at idle priority.
  [[nodiscard]] std::vector<JobRun> fills_between(TimePoint from, TimePoint to) const {
    return fills_.between(from, to);
  }

 private:
  class Track {
   public:
    void begin(JobId job, TimePoint at);
    void end(JobId job, TimePoint at);
    void end_all(TimePoint at);
    void forget(TimePoint before);

    // Returns a copy of the runs without an end, so that the caller may end some of them.
    [[nodiscard]] std::vector<JobRun> open() const { return open_; }

    [[nodiscard]] std::vector<JobRun> between(TimePoint from, TimePoint to) const;

   private:
    std::vector<JobRun> open_;  // by job, without an end
    std::deque<JobRun> ended_;
  };

  [[nodiscard]] TimePoint end_of(const JobRun& run, TimePoint taken) const;

  Track turns_, fills_;
  std::map<JobId, TimePoint> last_task_;  // end of the last task of recent jobs
};

}  // namespace score::monitor
