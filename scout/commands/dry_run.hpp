// This header declares scrun --dry-run, which shows where and when a job would start.
#pragma once

#include "base/result.hpp"
#include "proto/client.pb.h"
#include "scout/session/command.hpp"
#include "scout/session/head_link.hpp"

#include <string>

namespace score::scout {

// Returns one line for people; cpus_per_task is what the job requested.
std::string plan_line(const wire::Planned& planned, std::uint32_t cpus_per_task);

// Sends the request to the head and prints the answer. Nothing is stored or started. The exit code
// is 127 or 126 if this host cannot run the program, although nodes may be able to. Errors: those
// of a submission.
Result<int> dry_run(const Invocation& invocation, HeadLink& link, bool json,
                    const wire::Submit& submission);

}  // namespace score::scout
