#pragma once
// A job key names a part of a job's request that `score change` can replace. The table job_keys()
// is the only list of them: the command, its help, the wire and the head follow it. To add a key,
// add a row here, and its effect to head::apply_change().

#include <cstdint>
#include <span>
#include <string_view>

namespace score::inline base {

// Keys are sent by number.
enum class JobKey : std::uint8_t {
  Time,
  ElapsedTime,
  Queue,
  Name,
  Requeue,
  Signal,
  Nodes,
  Tasks,
  TasksPerNode,
  CpusPerTask,
  Memory,
  NodeList,
  Exclude,
  Constraint,
  Gres,
  After,
  Begin,
  Deadline,
  Account,
  Reservation,
  Weight,
  Priority,
};

struct JobKeyRule {
  JobKey key;
  std::string_view name;     // as users write it
  std::string_view option;   // the option of scbatch that takes the same value
  std::string_view value;    // what the value is, for help
  bool may_run = false;      // may be changed while the job runs
  bool may_be_none = false;  // the value "none" removes the request
};

// Returns all keys, ordered by JobKey.
[[nodiscard]] std::span<const JobKeyRule> job_keys();
// Returns nullptr for a number that is no key.
[[nodiscard]] const JobKeyRule* find_job_key(std::uint32_t number);
// Returns nullptr if no key has this name, which may also be that of the option.
[[nodiscard]] const JobKeyRule* find_job_key(std::string_view name);

}  // namespace score::inline base
