#pragma once
// ArrayTracker decides which task of a job array becomes a job next, and when an array has ended.
// The class is pure.
//
// An array is one record until its tasks have places. One task at a time waits in the queue; when
// it has a place, the next task joins the queue.

#include "base/ids.hpp"
#include "base/model/model.hpp"
#include "base/result.hpp"
#include "base/text/index_set.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace score::head {

inline constexpr std::uint32_t kMaxArrayTasks = 1'000'000;

struct ArrayTasks {
  IndexSet tasks;
  std::uint32_t at_once = 0;  // maximum of running tasks; 0: no limit

  friend bool operator==(const ArrayTasks&, const ArrayTasks&) = default;
};

// Parses a text such as "0-99%8". Errors: as IndexSet::parse, with at most kMaxArrayTasks tasks;
// Malformed (%0).
[[nodiscard]] Result<ArrayTasks> parse_array(std::string_view text);
[[nodiscard]] std::string text_of(const ArrayTasks& array);

class ArrayTracker {
 public:
  struct Counts {
    std::uint32_t waiting = 0;    // not yet jobs, or waiting in the queue
    std::uint32_t running = 0;    // with a place
    std::uint32_t completed = 0;  // ended as Completed
    std::uint32_t failed = 0;     // all others: they ended otherwise, or were dropped
    std::uint32_t broken = 0;     // those of `failed` that ended by themselves, not cancelled
  };

  struct View {
    std::string waiting;  // "8-99%8"; empty: none
    Counts counts;
    std::optional<JobId> in_queue;  // job of the task that waits in the queue
    bool is_full = false;           // the maximum of tasks is running
  };

  // ---- Events. An event of an unknown array or job is ignored.
  // Adds an array; `tasks` excludes the dropped ones, and tasks before `next` are or were jobs.
  // `total` is the number of tasks that were submitted.
  void add(JobId array, ArrayTasks tasks, std::uint32_t next, std::uint32_t total);
  // Adds tasks that ended before the head was restarted to the counts.
  void count_ended(JobId array, std::uint32_t completed, std::uint32_t broken);
  // An open array may pass tasks to the queue: it waits for no condition and is not held.
  void set_open(JobId array, bool is_open);
  // Call take() when the next task is about to be stored as a job.
  void take(JobId array);
  // The task has become a job. Returns false if the task was dropped in the meantime. If it cannot
  // be stored, call not_stored() instead.
  bool became(JobId array, std::uint32_t task, JobId job, bool is_placed);
  void not_stored(JobId array);
  void placed(JobId array, std::uint32_t task);
  void ended(JobId array, std::uint32_t task, JobState final_state);
  // These tasks will not become jobs.
  void drop_tasks(JobId array, const IndexSet& tasks);

  void forget(JobId array) { arrays_.erase(array); }

  // ---- decisions
  // Returns the task that becomes a job now; nullopt if there is none.
  [[nodiscard]] std::optional<std::uint32_t> next_task(JobId array) const;
  // Returns true if no task is left, and no job of the array is active.
  [[nodiscard]] bool is_done(JobId array) const;

  // ---- views
  [[nodiscard]] std::vector<JobId> arrays() const;

  [[nodiscard]] View view(JobId array) const;
  // Returns the tasks that are not yet jobs, with the array's limit.
  [[nodiscard]] ArrayTasks rest(JobId array) const;
  // Returns the active jobs of these tasks, or of all tasks if `tasks` is null.
  [[nodiscard]] std::map<std::uint32_t, JobId> jobs(JobId array, const IndexSet* tasks) const;

 private:
  struct Task {
    JobId job;
    bool is_placed = false;
  };

  struct Array {
    ArrayTasks tasks;  // without the dropped ones
    std::uint32_t next = 0;
    std::uint32_t total = 0;
    bool is_open = false;
    bool is_storing = false;
    bool is_dropped = false;  // the task that is being stored was dropped
    std::map<std::uint32_t, Task> active;
    std::optional<std::uint32_t> in_queue;
    std::uint32_t completed = 0;
    std::uint32_t broken = 0;
  };

  [[nodiscard]] static bool is_full(const Array& array);
  Array* find(JobId array);
  [[nodiscard]] const Array* find(JobId array) const;

  std::map<JobId, Array> arrays_;
};

}  // namespace score::head
