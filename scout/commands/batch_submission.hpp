// Declares what scbatch and scalloc do, for commands that do the same with other defaults.
#pragma once

#include "base/result.hpp"
#include "proto/client.pb.h"
#include "scout/session/command.hpp"
#include "scout/session/head_link.hpp"

#include <functional>
#include <string>
#include <vector>

namespace score::scout {

struct BatchStyle {
  std::string output = "score-%j.out";  // unless --output is given
  std::string array_output = "score-%A_%a.out";
  bool slurm_env = false;
  std::string before_id{};  // printed before the job's id
  // Options that override those in the script, and are overridden by those of the command line.
  std::vector<std::string> environment{};
  // Shows the plan of --dry-run; none: as scbatch does.
  std::function<Result<int>(HeadLink&, const wire::Submit&)> show_plan{};
};

// Parses the arguments of scbatch, submits the script and prints the job's id. Returns the exit
// code.
int submit_batch(const Invocation& invocation, const BatchStyle& style);

// Does what scalloc does. `is_slurm`: the command also gets variables with Slurm's names.
int hold_nodes(const Invocation& invocation, bool is_slurm);

}  // namespace score::scout
