// Supports the short commands: they connect, ask and print, and each is one function of this form.
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

// Connects to the first socket of `server` that answers; find_server(option) returned `server`.
// With two heads it retries for as long as a takeover may last, and the error names both heads.
Result<HeadLink> reach_head(const std::string& option, const std::string& server);

// Determines what happens to `work` if the connection is lost and a head answers again within
// `timeout`; with two heads either may answer.
struct ReconnectOptions {
  bool is_called = false;  // again from its beginning, because it only reads
  Duration timeout = std::chrono::seconds{5};
  bool reports_loss = false;  // after kSilentFor without a head, and when a head answers again
};

// Connects as the options say and calls `work`; prints errors and converts them to the exit code.
int with_head(const Invocation& invocation, const CommonOptions& options,
              const std::function<Result<int>(HeadLink&)>& work,
              ReconnectOptions reconnecting = {});

// A command that waits reports the loss of its head after this time.
inline constexpr Duration kSilentFor = std::chrono::seconds{1};

// A front end tries for this time to reconnect to a lost head.
inline constexpr Duration kReconnectFor = std::chrono::seconds{60};

// Returns "lost connection to the head; retrying for 1m".
std::string lost_head_text(Duration timeout);

inline constexpr ReconnectOptions kReadsOnly{.is_called = true};

// Returns all pages of a list. A job that ended between two pages is listed once. Errors: the
// head's.
Result<wire::JobList> list_jobs(HeadLink& head, wire::ListJobs request);

// Holds jobs that were requested by id, and a NotFound error for each one that is not known.
struct FoundJobs {
  wire::JobList list;
  std::vector<Error> missing;
};

Result<FoundJobs> find_jobs(HeadLink& head, const std::vector<std::uint64_t>& jobs);

// Returns the jobs with these ids. Errors: the head's; NotFound with the first id that is missing.
Result<wire::JobList> ask_jobs(HeadLink& head, const std::vector<std::uint64_t>& jobs);

// Returns the jobs, steps and tasks of arrays that the words name. Tasks that are not jobs yet are
// represented by the array's record. Errors include those of parse_job_word().
Result<FoundJobs> find_words(HeadLink& head, const std::vector<std::string>& words);

// Returns the job that one word names. Errors include NotFound if it is not known.
Result<wire::JobStatus> ask_word(HeadLink& head, const std::string& word);

// Returns the numbers of the jobs that the words name. Each unknown one is reported on standard
// error, and `code` becomes kExitError. Errors: those of parse_job_word(), before any request is
// sent.
Result<std::vector<std::uint64_t>> known_jobs(const Invocation& invocation, HeadLink& head,
                                              const std::vector<std::string>& words, int& code);

// Prints each error on standard error. Returns kExitError if there is one, else kExitOk.
int report_errors(const Invocation& invocation, const std::vector<Error>& errors);

// Returns the number of a job: "7", the step "7.0", or the task "12_7" if it is a job. Errors:
// those of ask_word(); NotFound if the step does not exist or the task has not started.
Result<std::uint64_t> find_job(HeadLink& head, const JobWord& named);
Result<std::uint64_t> find_job(HeadLink& head, std::string_view word);

// Calls `work` for each job, even after one failed. Prints each failure when it happens and, with
// --json, one object with the result of each job. Returns the exit code.
int for_each_job(const Invocation& invocation, const CommonOptions& options,
                 const std::vector<std::uint64_t>& jobs,
                 const std::function<Result<void>(std::uint64_t)>& work);

}  // namespace score::scout
