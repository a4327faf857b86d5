// scrun --dry-run: what a submission would come to.
#pragma once

#include "base/result.hpp"
#include "proto/client.pb.h"
#include "scout/session/command.hpp"
#include "scout/session/head_link.hpp"

#include <string>

namespace score::scout {

// One line for people, about tasks of so many cores each.
std::string plan_line(const wire::Planned& planned, std::uint32_t cpus_per_task);

// Asks the head and prints its answer; nothing is stored or started. The exit code: 127 or 126 if
// this host could not run the program, though nodes might. Errors: what a submission is refused
// with.
Result<int> dry_run(const Invocation& invocation, HeadLink& link, bool json,
                    const wire::Submit& submission);

}  // namespace score::scout
