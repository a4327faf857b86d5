// The short commands: connect, ask, print. Each is one function of this shape.
#pragma once

#include "scout/session/command.hpp"
#include "scout/session/head_link.hpp"
#include "scout/session/words.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace score::scout {

// Connects to the first socket of `server` that answers: what find_server(option) gave. With two
// heads it tries for as long as a take-over lasts, and the error names them.
Result<HeadLink> reach_head(const std::string& option, const std::string& server);

// What becomes of `work` if the connection is lost and the head, or with two the other one, comes
// back within `patience`.
struct Again {
  bool is_called = false;  // again, from its beginning: it only reads
  Duration patience = std::chrono::seconds{5};
  bool reports_loss = false;  // after kSilentFor without a head, and when there is one again
};

// Connects as the options say and calls `work`; prints errors and turns them into the exit code.
int with_head(const Invocation& invocation, const CommonOptions& options,
              const std::function<Result<int>(HeadLink&)>& work, Again again = {});

// A command that waits reports the loss of its head after this time.
inline constexpr Duration kSilentFor = std::chrono::seconds{1};

// "lost connection to the head; retrying for 1m"
std::string lost_head_text(Duration patience);

inline constexpr Again kReadsOnly{.is_called = true};

// All pages of a list; a job that ended between two pages is in it once. Errors: the head's.
Result<wire::JobList> list_jobs(HeadLink& head, wire::ListJobs request);

// Jobs that were asked for by id, and one error, NotFound, for each that is not known.
struct FoundJobs {
  wire::JobList list;
  std::vector<Error> missing;
};

Result<FoundJobs> find_jobs(HeadLink& head, const std::vector<std::uint64_t>& jobs);

// The jobs with these ids. Errors: the head's; NotFound naming the first that is missing.
Result<wire::JobList> ask_jobs(HeadLink& head, const std::vector<std::uint64_t>& jobs);

// The jobs, steps and tasks of arrays as people name them; of tasks that are no jobs yet the
// array's record. Errors: also those of parse_job_word().
Result<FoundJobs> find_words(HeadLink& head, const std::vector<std::string>& words);

// The same of one word, which must be known. Errors: also NotFound.
Result<wire::JobStatus> ask_word(HeadLink& head, const std::string& word);

// The numbers of the jobs that such words name; each that is not known is reported on standard
// error. `code` becomes kExitError then. Errors: those of parse_job_word(), before anything is
// asked.
Result<std::vector<std::uint64_t>> known_jobs(const Invocation& invocation, HeadLink& head,
                                              const std::vector<std::string>& words, int& code);

// Reports each error on standard error. Returns kExitError if there is one, else kExitOk.
int report_errors(const Invocation& invocation, const std::vector<Error>& errors);

// The number of a job: "7"; of the step "7.0"; of a task that is a job, "12_7". Errors: as
// ask_words(); NotFound (no such step, or the task has not started).
Result<std::uint64_t> find_job(HeadLink& head, const JobWord& named);
Result<std::uint64_t> find_job(HeadLink& head, std::string_view word);

// Calls `work` for each job, also after one that failed. Prints each failure when it happens and,
// with --json, one object with the result of each job. Gives the exit code.
int for_each_job(const Invocation& invocation, const CommonOptions& options,
                 const std::vector<std::uint64_t>& jobs,
                 const std::function<Result<void>(std::uint64_t)>& work);

}  // namespace score::scout
