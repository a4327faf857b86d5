#pragma once
// Jobs that wait for other jobs or for a time: tells the WaitBook what happens, and carries out
// what it decides. The cluster holds such a job back until then. Nothing of it needs to be stored
// but the conditions: after a restart of the head they are compared with what has become of the
// jobs.

#include "base/async/alarm.hpp"
#include "scored/head/jobs/arrays.hpp"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/waits/wait_book.hpp"

#include <optional>
#include <string>
#include <vector>

namespace score::head {

class WaitingJobs {
 public:
  struct Parts {  // all outlive it
    ClusterRunner& runner;
    JobTable& jobs;
    JobLife& life;
    Arrays& arrays;
    StoreReader& reader;
    const HeadConfig& config;
    Alarm& alarm;
  };

  explicit WaitingJobs(Parts parts) : parts_(parts) {}

  // Whether a new job may wait so. Errors: NotFound (a job that never was), Malformed (times that
  // contradict each other, a deadline in the past).
  [[nodiscard]] Status check(const Conditions& conditions, Duration wall_limit) const;
  // Why a job submitted now would have to wait; empty: it would not.
  [[nodiscard]] std::vector<std::string> foresee(const Conditions& conditions, UserId user,
                                                 const std::string& name) const;

  // Every job, ascending. True: it is deferred. Steps wait for cores of their job alone, and no job
  // waits for their names.
  bool add(Job& job);
  void began(const Job& job);
  void ended(const Job& job);

  // ---- called in turn
  void tick();
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

 private:
  [[nodiscard]] Progress progress_of(JobId job) const;
  void settle();
  void carry_out(const WaitDecision& decision);
  void go(Job& job);

  Parts parts_;
  WaitBook book_;
  bool is_settling_ = false;
};

}  // namespace score::head
