// Asks the head for jobs as Slurm's commands list them: each task of an array that is a job has a
// row of its own, and the tasks that are not jobs yet share one.
#pragma once

#include "scout/session/session.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout::slurm {

using Jobs = std::vector<wire::JobStatus>;

// Splits a list at the commas outside brackets: "12_[1,3],13" gives two words.
std::vector<std::string> split_jobs(std::string_view list);

// Returns the active jobs of all users; with `ended`, also those that ended lately.
Result<Jobs> queued_jobs(HeadLink& head, bool ended);

struct NamedJobs {
  Jobs jobs;                   // with their steps; ascending, without repeats
  std::vector<Error> missing;  // one for each word that names no job
};

// Returns the jobs, ended or not, that words such as "12", "12_7" and "12.0" name. A step names its
// job. Errors: the head's; Malformed for a word that is not a job id.
Result<NamedJobs> named_jobs(HeadLink& head, const std::vector<std::string>& words);

struct RecordQuery {
  bool all_users = false;
  std::int64_t since_ns = 0;  // wall time
  std::int64_t until_ns = 0;  // later ends and submissions are left out
};

// Returns the jobs that ended within the time, and the active ones, with their steps.
Result<Jobs> recorded_jobs(HeadLink& head, const RecordQuery& query);

}  // namespace score::scout::slurm
