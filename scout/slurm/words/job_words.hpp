// Converts what the head reports about a job to the words in which Slurm's commands print it.
#pragma once

#include "proto/client.pb.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace score::scout::slurm {

struct StateWords {
  std::string_view full;     // "RUNNING"
  std::string_view compact;  // "R"
};

// Returns the words of a state. A job that a node refused to launch is FAILED, because clients know
// no state for it.
StateWords state_words(std::uint32_t job_state);
// Returns true if a word such as "R", "running" or "all" means the state.
bool is_state(std::string_view word, std::uint32_t job_state);
// Returns true for each state of Slurm's, also for those in which no job is here.
bool is_state_word(std::string_view word);

// Returns "12", "12_7" for a task of an array, and "12_[8-99%8]" for the tasks of an array that are
// not jobs yet.
std::string id_words(const wire::JobStatus& job);
// Returns the number of the array, or of the job.
std::uint64_t array_number(const wire::JobStatus& job);
// Returns false for the record of an array whose tasks are all jobs of their own.
bool has_row(const wire::JobStatus& job);

// Returns "1-02:03:04", "2:03:04" or "3:04", as squeue prints times.
std::string queue_time(std::int64_t ns);
// Returns "1-02:03:04" or "00:03:04", as sacct prints times.
std::string record_time(std::int64_t ns);
// Returns the limit of elapsed time: "UNLIMITED", or one of the two forms above.
std::string limit_words(const wire::JobStatus& job, std::string (*form)(std::int64_t));
// Returns a local time such as "2026-11-29T14:00:00"; `unknown` for 0.
std::string moment(std::int64_t wall_ns, std::string_view unknown);

// Returns "CODE:SIGNAL".
std::string exit_words(std::uint32_t state, std::int32_t exit_code, std::int32_t signal);
// Returns one word: why the job waits, or how it ended; "None" if there is nothing to say.
std::string reason_word(const wire::JobStatus& job);
// Returns the state as sacct prints it: "CANCELLED by 1000".
std::string record_state(const wire::JobStatus& job);

// Returns the number of cores that the job has, or would have.
std::uint32_t core_count(const wire::JobStatus& job);
std::uint32_t node_count(const wire::JobStatus& job);
// Returns "4000M"; "0" if no memory was requested.
std::string memory_words(const wire::JobStatus& job);
// Returns "cpu=2,mem=4000M,node=1,billing=2".
std::string resource_words(const wire::JobStatus& job);
// Returns "gres:gpu:2", or "N/A".
std::string generic_words(const wire::JobStatus& job);

}  // namespace score::scout::slurm
