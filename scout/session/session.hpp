// The short commands: connect, ask, print. Each is one function of this shape.
#pragma once

#include "scout/session/command.hpp"
#include "scout/session/head_link.hpp"

#include <functional>
#include <string>
#include <vector>

namespace score::scout {

// Connects as the options say and calls `work`; errors of either are told and become the exit code.
int with_head(const Invocation& invocation, const CommonOptions& options,
              const std::function<Result<int>(HeadLink&)>& work);

// The jobs with these ids. Errors: the head's; NotFound naming the first that is missing.
Result<wire::JobList> ask_jobs(HeadLink& head, const std::vector<std::uint64_t>& jobs);

// What is done to each of several jobs, one that fails not sparing the others: failures are told as
// they come, and with --json one object says of each job whether it was done. Gives the exit code.
int for_each_job(const Invocation& invocation, const CommonOptions& options,
                 const std::vector<std::uint64_t>& jobs,
                 const std::function<Result<void>(std::uint64_t)>& work);

}  // namespace score::scout
