#pragma once
// Job arrays: which task becomes a job next, and when an array has ended. Pure.
//
// An array is one record until its tasks have places: one task at a time stands in the queue, and
// when it has its place, the next one joins the queue.

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
  std::uint32_t at_once = 0;  // as many run at a time; 0: as many as there is room for

  friend bool operator==(const ArrayTasks&, const ArrayTasks&) = default;
};

// "0-99%8". Errors: as IndexSet::parse, with at most kMaxArrayTasks tasks; Malformed (%0).
[[nodiscard]] Result<ArrayTasks> parse_array(std::string_view text);
[[nodiscard]] std::string text_of(const ArrayTasks& array);

class ArrayBook {
 public:
  struct Counts {
    std::uint32_t waiting = 0;    // they are no jobs yet, or wait in the queue
    std::uint32_t running = 0;    // they have a place
    std::uint32_t completed = 0;  // they ended so
    std::uint32_t failed = 0;     // all others: they ended otherwise, or were dropped
    std::uint32_t broken = 0;     // of these, those that ended by themselves: not cancelled
  };

  struct View {
    std::string waiting;  // "8-99%8"; empty: none
    Counts counts;
    std::optional<JobId> in_queue;  // the task that waits in the queue
    bool is_full = false;           // as many run as may at a time
  };

  // ---- events; those about an array or a job that is not known change nothing
  // tasks: without the dropped ones; those before `next` are jobs already, or have been. total: of
  // the array as it was submitted.
  void add(JobId array, ArrayTasks tasks, std::uint32_t next, std::uint32_t total);
  // Tasks that ended before the head was restarted.
  void count_ended(JobId array, std::uint32_t completed, std::uint32_t broken);
  // It may (not) give tasks to the queue: it waits for no condition, and is not held.
  void set_open(JobId array, bool is_open);
  // The next task is being stored as a job ...
  void take(JobId array);
  // ... and is one, or could not be stored. False: it was dropped meanwhile.
  bool became(JobId array, std::uint32_t task, JobId job, bool is_placed);
  void not_stored(JobId array);
  void placed(JobId array, std::uint32_t task);
  void ended(JobId array, std::uint32_t task, JobState final_state);
  // They will not become jobs.
  void drop_tasks(JobId array, const IndexSet& tasks);

  void forget(JobId array) { arrays_.erase(array); }

  // ---- decisions
  // The task that becomes a job now.
  [[nodiscard]] std::optional<std::uint32_t> next_task(JobId array) const;
  // No task is left, and none is a job that has not ended.
  [[nodiscard]] bool is_done(JobId array) const;

  // ---- views
  [[nodiscard]] std::vector<JobId> arrays() const;

  [[nodiscard]] View view(JobId array) const;
  // Tasks that are no jobs yet, with the array's limit.
  [[nodiscard]] ArrayTasks rest(JobId array) const;
  // The jobs of its tasks that have not ended; of these tasks, or of all.
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
    bool is_dropped = false;  // the task that is being stored
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
