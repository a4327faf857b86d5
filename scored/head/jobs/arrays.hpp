#pragma once
// Arrays makes jobs of the tasks of job arrays when the queue can take one, and ends the record of
// an array when every task has ended. ArrayTracker decides the order. The record itself is a job
// that the cluster holds back until the array ends.
//
// A task becomes a job in one transaction with the array's progress, so that after a restart no
// task has run twice and none is lost.

#include "proto/common.pb.h"
#include "scored/head/cluster/head_context.hpp"
#include "scored/head/jobs/array_tracker.hpp"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_table.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace score::head {

class Arrays {
 public:
  // The parameters must outlive the object.
  Arrays(HeadContext& head, JobLife& life, ArrayTracker& tracker)
      : head_(head), life_(life), tracker_(tracker) {}

  // Adds a new array, or one from the store whose Job::rest is set. The jobs of its tasks must be
  // added after it. If it `waits` for other jobs or a time, open() must be called later.
  void add(const Job& array, bool waits);
  void add_task(const Job& task);
  // Call this when the array waits for nothing any more.
  void open(Job& array);
  // Call this when the array was held or released.
  void hold_changed(Job& array);

  void began(const Job& task);
  void ended(const Job& job);  // a task or an array

  // ---- cancel
  // Returns what must be stored before `by` cancels these tasks, or all. Errors: NotFound (no task
  // of `tasks` is left).
  [[nodiscard]] Result<std::vector<Change>> check_cancel(const Job& array, const std::string& tasks,
                                                         const std::string& by) const;
  // Cancels these tasks, or all if `tasks` is "". Without a grace, tasks are killed immediately.
  void cancel(Job& array, const std::string& tasks, const std::string& by, Duration grace);
  // Returns the active jobs of these tasks.
  [[nodiscard]] std::vector<JobId> jobs(JobId array, const std::string& tasks) const;
  // Ends the array and its tasks for this reason.
  void end(Job& array, const std::string& why, Duration grace);

  // Retries what could not be stored. Must be called once after a restart of the head.
  void settle_all();

 private:
  void settle(JobId array);
  void finish(Job& array);
  void make_job(Job& array, std::uint32_t task);
  void made(JobId array, AddJob&& add, const ResourceRequest& request, const Status& stored);

  HeadContext& head_;
  JobLife& life_;
  ArrayTracker& tracker_;
};

// Completes the specification of one task of an array: its variables, and its numbers in file
// names.
void fill_array_task(const JobInfo& task, wire::LaunchSpec& spec);
// Expands %A to the array's id and %a to the task, with a width as in %3a; the rest is unchanged.
[[nodiscard]] std::string expand_array_pattern(std::string_view pattern, const JobInfo& task);

}  // namespace score::head
