#pragma once
// Job arrays: makes jobs of their tasks when the queue can take one, and ends the record of an
// array when every task has ended. The order of changes is the ArrayBook's. The record itself is a
// job that the cluster holds back until it ends.
//
// A task becomes a job in one transaction with the array's progress, so that after a restart none
// has run twice and none is lost.

#include "proto/common.pb.h"
#include "scored/head/jobs/job_life.hpp"
#include "scored/head/jobs/job_table.hpp"
#include "scored/head/store/commit_log.hpp"
#include "scored/head/waits/array_book.hpp"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace score::head {

class Arrays {
 public:
  struct Parts {  // all outlive it
    ClusterRunner& runner;
    JobTable& jobs;
    JobLife& life;
    StoreReader& reader;
    CommitLog& commits;
    ArrayBook& book;
    std::function<JobId()> new_number;  // for a job that is stored next
  };

  explicit Arrays(Parts parts) : parts_(std::move(parts)) {}

  // A new array or one of the store, whose Job::rest is set; with its tasks' jobs that the store
  // has, after it. waits: for other jobs or a time; open() comes later.
  void add(const Job& array, bool waits);
  void add_task(const Job& task);
  // It waits for nothing any more.
  void open(Job& array);
  // It was held or released.
  void hold_changed(Job& array);

  void began(const Job& task);
  void ended(const Job& job);  // a task, or an array

  // ---- cancel. Errors: NotFound (no task of `tasks` is left).
  // What must be stored before these tasks, or all, are cancelled by this user.
  [[nodiscard]] Result<std::vector<Change>> check_cancel(const Job& array, const std::string& tasks,
                                                         const std::string& by) const;
  // tasks "": all. With no time of grace tasks are killed at once.
  void cancel(Job& array, const std::string& tasks, const std::string& by, Duration grace);
  // The jobs of these tasks that have not ended.
  [[nodiscard]] std::vector<JobId> jobs(JobId array, const std::string& tasks) const;
  // It ends, and its tasks with it, for this reason.
  void end(Job& array, const std::string& why, Duration grace);

  // Tries again what could not be stored; after a restart of the head the first time.
  void settle_all();

 private:
  void settle(JobId array);
  void finish(Job& array);
  void make_job(Job& array, std::uint32_t task);
  void made(JobId array, AddJob&& add, const ResourceRequest& request, const Status& stored);

  Parts parts_;
};

// The specification of one task of an array: its variables, and its numbers in the names of files.
void fill_array_task(const JobInfo& task, wire::LaunchSpec& spec);
// %A is the array, %a the task, with a width as in %3a; everything else stays.
[[nodiscard]] std::string expand_array_pattern(std::string_view pattern, const JobInfo& task);

}  // namespace score::head
