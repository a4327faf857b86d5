#pragma once
// Checks as the user whether the tasks could start here, before anything is started or created. The
// process enters the job's directory during the checks, because names in the plan are relative to
// it.

#include "base/exit_codes.hpp"
#include "scored/job/plan/plan.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <utility>
#include <vector>

namespace score::shepherd {

struct Refusal {
  int exit_code = kExitError;
  std::string reason;      // one line: what failed and where
  bool may_retry = false;  // the job is not the cause
};

// Checks directory, executable, size of arguments and environment, limits, input and output files.
std::optional<Refusal> check_plan(const Plan& plan);

// Expands a pattern of the specification to the name of the task's file. Errors: as
// base::expand_pattern().
base::Result<std::string> file_name_of(const Plan& plan, std::uint32_t task,
                                       std::string_view pattern);

// Returns the path for execve. Errors: NotFound, Denied; as find_executable. The working directory
// must be the job's.
base::Result<std::string> executable_of(const wire::LaunchSpec& spec, const wire::Program& program);

// Returns the indexes of the programs that tasks of this node run, in ascending order.
std::vector<std::uint32_t> local_apps(const Plan& plan);

// Returns the resource limits of a task: those of the submitting shell that this node knows, and
// the share of the node's memory if no cgroup enforces it. Errors: Denied (a limit is above what
// this node grants); the text names it.
base::Result<std::vector<std::pair<int, rlimit>>> limits_of(const Plan& plan);

}  // namespace score::shepherd
